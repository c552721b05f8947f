//! A streaming splitter of lists into objects, so that only one object is in memory as text.

use super::untrusted::MAX_OBJECT;

/// The longest that a list may be without its objects, in bytes. That is its kind, its version and the
/// `continue` token, which contains the name of an object.
const MAX_ENVELOPE: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct ListSplitter {
    envelope: Vec<u8>,
    item: Vec<u8>,
    /// The start of the last string in the envelope.
    text: usize,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// Whether the position is inside the array `items`.
    in_items: bool,
    /// Whether a comma was read, which another object must follow.
    is_object_due: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListSplitError {
    NotJson,
    /// One part is longer than this many bytes.
    TooLong(usize),
}

impl ListSplitter {
    /// Reads more of the list, and passes each object that is now whole to `object`.
    pub(super) fn take<E: From<ListSplitError>>(
        &mut self,
        bytes: &[u8],
        mut object: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for &byte in bytes {
            if self.in_text {
                self.in_text = byte != b'"' || self.is_escaped;
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                self.put(byte)?;
                continue;
            }
            match byte {
                b'"' => {
                    self.in_text = true;
                    self.text = self.envelope.len();
                    self.put(byte)?;
                }
                b'[' if self.is_before_items() => {
                    self.put(byte)?;
                    (self.depth, self.in_items) = (2, true);
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.put(byte)?;
                }
                b'}' | b']' => {
                    self.depth = self.depth.checked_sub(1).ok_or(ListSplitError::NotJson)?;
                    if self.in_items && self.depth == 1 {
                        if self.is_object_due && self.item.is_empty() {
                            return Err(ListSplitError::NotJson.into());
                        }
                        self.end_object(&mut object)?;
                        (self.in_items, self.is_object_due) = (false, false);
                    }
                    self.put(byte)?;
                }
                b',' if self.in_items && self.depth == 2 => {
                    if self.item.is_empty() {
                        return Err(ListSplitError::NotJson.into());
                    }
                    self.end_object(&mut object)?;
                    self.is_object_due = true;
                }
                byte if byte.is_ascii_whitespace() => {}
                byte => self.put(byte)?,
            }
        }
        Ok(())
    }

    pub(super) fn envelope(&self) -> &[u8] {
        &self.envelope
    }

    pub(super) fn held(&self) -> usize {
        self.item.len()
    }

    fn put(&mut self, byte: u8) -> Result<(), ListSplitError> {
        let (to, longest) = match self.in_items {
            true => (&mut self.item, MAX_OBJECT),
            false => (&mut self.envelope, MAX_ENVELOPE),
        };
        if to.len() >= longest {
            return Err(ListSplitError::TooLong(longest));
        }
        to.push(byte);
        Ok(())
    }

    fn is_before_items(&self) -> bool {
        let field = self.envelope.get(self.text..).unwrap_or_default();
        !self.in_items && self.depth == 1 && field == b"\"items\":"
    }

    fn end_object<E: From<ListSplitError>>(
        &mut self,
        object: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let ended = match self.item.is_empty() {
            true => Ok(()),
            false => object(&self.item),
        };
        // Frees the buffer of a large object, so that it isn't kept for the rest of the list.
        match self.item.capacity() > MAX_ENVELOPE {
            true => self.item = Vec::new(),
            false => self.item.clear(),
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl From<ListSplitError> for String {
        fn from(broken: ListSplitError) -> String {
            format!("{broken:?}")
        }
    }

    /// Splits a list that arrives in pieces of this size into its objects and the rest.
    fn apart(list: &str, piece: usize) -> Result<(Vec<String>, String), String> {
        let (mut items, mut objects) = (ListSplitter::default(), Vec::new());
        for piece in list.as_bytes().chunks(piece) {
            items.take(piece, |object| {
                objects.push(String::from_utf8(object.to_vec()).unwrap());
                Ok::<_, String>(())
            })?;
        }
        Ok((objects, String::from_utf8(items.envelope().to_vec()).unwrap()))
    }

    #[test]
    fn a_list_comes_apart_wherever_it_is_cut() {
        let list = r#" {"kind" : "PodList", "odd\"items": [1], "metadata":{"items":[{"a":1}], "continue":"]}"},
            "items" : [ {"a":"],{\"\\"} , {"b":[{"items":[1, 2]}]}, 3 ], "after":"\u005d" } "#;
        let envelope = r#"{"kind":"PodList","odd\"items":[1],"metadata":{"items":[{"a":1}],"continue":"]}"},"items":[],"after":"\u005d"}"#;
        let objects = [r#"{"a":"],{\"\\"}"#, r#"{"b":[{"items":[1,2]}]}"#, "3"];
        for piece in [1, 2, 3, 7, 1_000] {
            let (found, rest) = apart(list, piece).unwrap();
            assert_eq!((found.as_slice(), rest.as_str()), (&objects.map(str::to_owned)[..], envelope));
        }
        for (list, envelope) in [
            (r#"{"items":[]}"#, r#"{"items":[]}"#),
            (r#"{"items":null}"#, r#"{"items":null}"#),
            ("[[1]]", "[[1]]"),
        ] {
            assert_eq!(apart(list, 1), Ok((Vec::new(), envelope.to_owned())));
        }
    }

    #[test]
    fn no_more_is_held_than_one_object() {
        let long = "x".repeat(MAX_OBJECT);
        let over = |longest: usize| Err(format!("TooLong({longest})"));
        assert_eq!(apart(&format!(r#"{{"items":["{long}"]}}"#), 4096), over(MAX_OBJECT));
        assert_eq!(apart(&format!(r#"{{"metadata":"{long}"#), 4096), over(MAX_ENVELOPE));
        for broken in ["]", r#"{"items":[1,,2]}"#, r#"{"items":[,1]}"#, r#"{"items":[1,]}"#] {
            assert_eq!(apart(broken, 1), Err("NotJson".to_owned()), "{broken}");
        }
    }
}
