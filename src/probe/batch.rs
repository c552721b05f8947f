//! A batch of one record, in the only format that Kafka 4 accepts (magic 2).

use super::wire::WireWriter;

/// The bytes before those that the checksum covers, after the batch's length.
const MAGIC: i8 = 2;

/// Encodes one record without a key.
pub fn of_one(value: &[u8], timestamp_ms: i64) -> Vec<u8> {
    let mut record = Vec::new();
    // No attributes, no differences of time and offset, no key.
    record.push(0);
    [0, 0, -1].into_iter().for_each(|number| varint(&mut record, number));
    varint(&mut record, value.len() as i64);
    record.extend_from_slice(value);
    // No headers.
    varint(&mut record, 0);

    let mut covered = WireWriter::default();
    // Attributes and the difference of the last offset.
    covered.int16(0);
    covered.int32(0);
    // The times of the first and the last record.
    covered.int64(timestamp_ms);
    covered.int64(timestamp_ms);
    // No producer id, epoch and sequence number: the write is not idempotent.
    covered.int64(-1);
    covered.int16(-1);
    covered.int32(-1);
    // The number of records.
    covered.int32(1);
    let mut length = Vec::new();
    varint(&mut length, record.len() as i64);
    covered.bare(&length);
    covered.bare(&record);
    let covered = covered.into_bytes();

    let mut batch = WireWriter::default();
    // The broker sets the offset.
    batch.int64(0);
    // After it: the leader's epoch, the format, the checksum, and the bytes that it covers.
    batch.int32(4 + 1 + 4 + covered.len() as i32);
    batch.int32(-1);
    batch.int8(MAGIC);
    batch.bare(&crc32c(&covered).to_be_bytes());
    batch.bare(&covered);
    batch.into_bytes().to_vec()
}

/// Whether a value is among records that were read. Batches are stored as they were written, uncompressed.
pub fn has(records: &[u8], value: &[u8]) -> bool {
    records.windows(value.len()).any(|window| window == value)
}

/// A number in zigzag form, seven bits a byte (Protocol Buffers' `sint64`).
fn varint(to: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// CRC-32C (RFC 3720, appendix B.4), one bit after the other: a batch has some 130 bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let shifted = |crc: u32, _| (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shifted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn numbers_are_written_as_kafka_reads_them() {
        for (number, bytes) in [(0, &[0][..]), (-1, &[1]), (63, &[0x7e]), (64, &[0x80, 1]), (-65, &[0x81, 1])]
        {
            let mut written = Vec::new();
            varint(&mut written, number);
            assert_eq!(written, bytes, "{number}");
        }
    }

    #[test]
    fn a_written_value_is_found() {
        let batch = of_one(&[7; 64], 1);
        assert!(has(&batch, &[7; 64]) && !has(&batch, &[8; 64]) && !has(&[], &[7; 64]));
    }
}
