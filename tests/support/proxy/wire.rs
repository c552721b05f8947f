//! HTTP/1.1 as bytes: heads, and bodies by length or in chunks.

use std::io::{self, BufRead, Read as _, Write};

pub struct Message {
    pub head: String,
    pub body: Vec<u8>,
}

impl Message {
    /// Reads a message; `None` at the end of the connection.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Message>> {
        let Some(head) = read_head(from)? else { return Ok(None) };
        let mut body = Vec::new();
        if answer_has_body(&head) {
            read_body(&head, from, |part| {
                body.extend_from_slice(part);
                Ok(())
            })?;
        }
        Ok(Some(Message { head, body }))
    }

    /// Writes it. A chunked body gets a length.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(self.head_with(&format!("content-length: {}", self.body.len())).as_bytes())?;
        to.write_all(&self.body)?;
        to.flush()
    }

    /// The head with another line for the length of the body.
    pub fn head_with(&self, length: &str) -> String {
        let says_length = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            name == "content-length" || name == "transfer-encoding"
        };
        let lines = self.head.trim_end().split("\r\n").filter(|line| !says_length(line));
        format!("{}\r\n{length}\r\n\r\n", lines.collect::<Vec<_>>().join("\r\n"))
    }

    pub fn method_and_path(&self) -> (&str, &str) {
        let mut words = self.head.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
    }
}

pub fn read_head(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut head = String::new();
    loop {
        match from.read_line(&mut head)? {
            0 if head.is_empty() => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            2 if head.ends_with("\r\n\r\n") => return Ok(Some(head)),
            _ => {}
        }
    }
}

/// An answer without content has no body, whatever its head says.
pub fn answer_has_body(head: &str) -> bool {
    !head.starts_with("HTTP/1.1 204") && !head.starts_with("HTTP/1.1 304")
}

/// Forwards a body part by part as it arrives, with its framing.
pub fn relay_body(head: &str, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let chunked = is_chunked(head);
    read_body(head, from, |part| {
        if chunked {
            write!(to, "{:x}\r\n", part.len())?;
        }
        to.write_all(part)?;
        if chunked {
            to.write_all(b"\r\n")?;
        }
        to.flush()
    })?;
    if chunked {
        to.write_all(b"0\r\n\r\n")?;
    }
    to.flush()
}

fn is_chunked(head: &str) -> bool {
    field(head, "transfer-encoding").is_some_and(|value| value == "chunked")
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn read_body(
    head: &str,
    from: &mut impl BufRead,
    mut part: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let wrong = |_| io::Error::from(io::ErrorKind::InvalidData);
    if !is_chunked(head) {
        let length = field(head, "content-length").map_or(Ok(0), str::parse).map_err(wrong)?;
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        return part(&body);
    }
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).map_err(wrong)?;
        let mut chunk = Vec::new();
        // Includes the line break after the chunk.
        from.take(size as u64 + 2).read_to_end(&mut chunk)?;
        if size == 0 {
            return Ok(());
        }
        part(chunk.get(..size).ok_or(io::ErrorKind::UnexpectedEof)?)?;
    }
}
