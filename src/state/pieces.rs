//! Splits large records into pieces for sled.

use sled::{Batch, Tree};

/// The largest piece, in bytes. sled never frees the space of values over 128 KiB.
const PIECE: usize = 64 * 1024;

/// The key of a record's first piece. Others have another prefix, so that a scan only sees first pieces.
pub(super) fn head_key(key: &[u8]) -> Vec<u8> {
    [b"h", key].concat()
}

fn piece_key(key: &[u8], index: u32) -> Vec<u8> {
    [b"p", key, &[0], &index.to_be_bytes()].concat()
}

/// Splits the first piece into the number of further pieces and its data.
fn further_pieces(head: &[u8]) -> Option<(u32, &[u8])> {
    let (count, rest) = head.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*count), rest))
}

pub(super) fn insert_pieces(batch: &mut Batch, key: &[u8], bytes: &[u8]) {
    let (first, rest) = bytes.split_at(bytes.len().min(PIECE));
    let mut count = 0_u32;
    for piece in rest.chunks(PIECE) {
        batch.insert(piece_key(key, count), piece);
        count += 1;
    }
    batch.insert(head_key(key), [&count.to_be_bytes(), first].concat());
}

pub(super) fn remove_batch(tree: &Tree, key: &[u8]) -> sled::Result<Batch> {
    let mut batch = Batch::default();
    if let Some(head) = tree.get(head_key(key))? {
        let count = further_pieces(&head).map_or(0, |(count, _)| count);
        (0..count).for_each(|index| batch.remove(piece_key(key, index)));
        batch.remove(head_key(key));
    }
    Ok(batch)
}

/// Joins the pieces of a record; none if any is missing.
pub(super) fn join_pieces(tree: &Tree, key: &[u8], head: &[u8]) -> sled::Result<Option<Vec<u8>>> {
    let Some((count, first)) = further_pieces(head) else { return Ok(None) };
    let mut bytes = first.to_vec();
    for index in 0..count {
        match tree.get(piece_key(key, index))? {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => return Ok(None),
        }
    }
    Ok(Some(bytes))
}
