//! Reads Ruby's serialisation format (`Marshal.dump`), as far as profiles use it, into JSON values.
//!
//! Two bytes of version (4, 8), then one value. A value is a type letter and its content; integers
//! have one to five bytes. Strings, arrays, hashes, floats and large integers are numbered in
//! order, and `@` refers to one of them by number; symbols are numbered separately, and `;` refers
//! to one.

use serde_json::{Map, Value};

const VERSION: [u8; 2] = [4, 8];
/// Maximum nesting depth.
const DEPTH_MAX: u32 = 64;
/// Maximum bytes of repeated strings per byte of the file.
const REPEATED_MAX: usize = 64;

pub(super) fn is_dump(head: &[u8]) -> bool {
    // A profile is a hash.
    head.starts_with(&[VERSION[0], VERSION[1], b'{'])
}

/// The value, or an error with the byte offset.
pub(super) fn read(bytes: &[u8]) -> Result<Value, String> {
    if !bytes.starts_with(&VERSION) {
        return Err("byte 0: not Ruby Marshal format, version 4.8".to_owned());
    }
    let mut reader = Reader {
        bytes,
        at: VERSION.len(),
        symbols: Vec::new(),
        objects: Vec::new(),
        repeated: 0,
    };
    reader.value(0)
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    symbols: Vec<String>,
    /// Values that can be referred to; none for containers.
    objects: Vec<Option<Value>>,
    repeated: usize,
}

type Result2<T> = Result<T, String>;

impl Reader<'_> {
    fn wrong<T>(&self, what: &str) -> Result2<T> {
        Err(format!("byte {}: {what}", self.at))
    }

    fn byte(&mut self) -> Result2<u8> {
        let Some(byte) = self.bytes.get(self.at) else {
            return self.wrong("the dump ends within a value");
        };
        self.at += 1;
        Ok(*byte)
    }

    /// One byte for small numbers; otherwise the number of bytes that follow, lowest first,
    /// negative for negative numbers.
    fn number(&mut self) -> Result2<i64> {
        let first = self.byte()? as i8;
        let count = match first {
            0 => return Ok(0),
            5.. => return Ok(i64::from(first) - 5),
            ..=-5 => return Ok(i64::from(first) + 5),
            _ => first.unsigned_abs(),
        };
        let mut number: i64 = if first < 0 { -1 } else { 0 };
        for place in 0..u32::from(count) {
            let byte = i64::from(self.byte()?);
            number &= !(0xff << (8 * place));
            number |= byte << (8 * place);
        }
        Ok(number)
    }

    /// A count, at most the number of bytes left.
    fn count(&mut self) -> Result2<usize> {
        let left = self.bytes.len();
        match usize::try_from(self.number()?) {
            Ok(count) if count <= left.saturating_sub(self.at) => Ok(count),
            _ => self.wrong("a length beyond the end of the dump"),
        }
    }

    fn raw(&mut self) -> Result2<&[u8]> {
        let count = self.count()?;
        let begin = self.at;
        self.at += count;
        Ok(&self.bytes[begin..self.at])
    }

    fn text(&mut self) -> Result2<String> {
        Ok(String::from_utf8_lossy(self.raw()?).into_owned())
    }

    fn value(&mut self, depth: u32) -> Result2<Value> {
        if depth > DEPTH_MAX {
            return self.wrong("values nested too deeply");
        }
        match self.byte()? {
            b'0' => Ok(Value::Null),
            b'T' => Ok(Value::Bool(true)),
            b'F' => Ok(Value::Bool(false)),
            b'i' => Ok(self.number()?.into()),
            b'"' => {
                let text = Value::String(self.text()?);
                Ok(self.keep(text))
            }
            b'f' => {
                let number = self.text()?.parse::<f64>().unwrap_or(f64::NAN);
                Ok(self.keep(number.into()))
            }
            b'l' => self.large(),
            b':' => {
                let text = self.text()?;
                self.symbols.push(text.clone());
                self.repeat(Value::String(text))
            }
            b';' => self.symbol_reference(),
            b'@' => self.object_reference(),
            b'[' => self.array(depth),
            b'{' => self.hash(depth),
            b'I' => {
                let value = self.value(depth + 1)?;
                for _ in 0..self.count()? {
                    self.value(depth + 1)?;
                    self.value(depth + 1)?;
                }
                Ok(value)
            }
            other => {
                self.at -= 1;
                let letter = char::from(other).escape_default();
                self.wrong(&format!("unsupported value type `{letter}`"))
            }
        }
    }

    fn keep(&mut self, value: Value) -> Value {
        self.objects.push(Some(value.clone()));
        value
    }

    /// Sign, number of 16-bit words, words.
    fn large(&mut self) -> Result2<Value> {
        let is_negative = self.byte()? == b'-';
        let words = self.count()?;
        let end = self.at.saturating_add(words.saturating_mul(2));
        let Some(bytes) = self.bytes.get(self.at..end) else {
            return self.wrong("a large integer beyond the end of the dump");
        };
        if bytes.len() > 8 {
            return self.wrong("an integer of more than 64 bits");
        }
        self.at = end;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let number = u64::from_le_bytes(word);
        let value = match i64::try_from(number) {
            Ok(number) if is_negative => Value::from(-number),
            _ => Value::from(number),
        };
        Ok(self.keep(value))
    }

    fn symbol_reference(&mut self) -> Result2<Value> {
        let place = usize::try_from(self.number()?).ok();
        match place.and_then(|place| self.symbols.get(place)).cloned() {
            Some(text) => self.repeat(Value::String(text)),
            None => self.wrong("reference to an undefined symbol"),
        }
    }

    fn object_reference(&mut self) -> Result2<Value> {
        let place = usize::try_from(self.number()?).ok();
        match place.and_then(|place| self.objects.get(place)).cloned() {
            Some(Some(value)) => self.repeat(value),
            Some(None) => self.wrong("repeated array or hash"),
            None => self.wrong("reference to an undefined value"),
        }
    }

    /// Two bytes can repeat a string of any length.
    fn repeat(&mut self, value: Value) -> Result2<Value> {
        self.repeated += value.as_str().map_or(0, str::len);
        if self.repeated > self.bytes.len().saturating_mul(REPEATED_MAX) {
            return self.wrong("too many repeated strings");
        }
        Ok(value)
    }

    fn array(&mut self, depth: u32) -> Result2<Value> {
        self.objects.push(None);
        let count = self.count()?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(values))
    }

    fn hash(&mut self, depth: u32) -> Result2<Value> {
        self.objects.push(None);
        let mut values = Map::new();
        for _ in 0..self.count()? {
            let key = match self.value(depth + 1)? {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                // Written as text, nested keys would double in size at each level.
                _ => return self.wrong("a key that is neither a string nor a number"),
            };
            let value = self.value(depth + 1)?;
            values.insert(key, value);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Output of `Marshal.dump(...)` in Ruby 3.1.
    #[test]
    fn values_are_those_that_ruby_wrote() {
        for (bytes, value) in [
            (&b"\x04\x080"[..], json!(null)),
            (
                b"\x04\x08[\x0aTFi\x00i\xfai\x02\x66\x02",
                json!([true, false, 0, -1, 614]),
            ),
            (b"\x04\x08i\xfe\x00\xff", json!(-256)),
            (b"\x04\x08i\x04\xff\xff\xff\x3f", json!(1_073_741_823)),
            (
                b"\x04\x08l+\x08\xd8\xac\xe0\x68\xf2\x7f",
                json!(140_679_118_367_960_i64),
            ),
            (b"\x04\x08l-\x07\x00\x00\x00\x80", json!(-2_147_483_648_i64)),
            (b"\x04\x08{\x07:\x06ai\x06;\x00i\x07", json!({"a": 2})),
            (b"\x04\x08[\x07I\"\x06x\x06:\x06ET@\x06", json!(["x", "x"])),
            (b"\x04\x08f\x081.5", json!(1.5)),
        ] {
            assert_eq!(read(bytes), Ok(value), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (bytes, words) in [
            (&b"\x04\x09"[..], "byte 0"),
            (b"\x04\x08", "byte 2: the dump ends"),
            (b"\x04\x08\"\x7f", "byte 4: a length"),
            (b"\x04\x08[\xfa", "a length"),
            (b"\x04\x08;\x06", "a symbol"),
            (b"\x04\x08[\x06@\x00", "twice"),
            (b"\x04\x08o:\x06A\x00", "byte 2: unsupported value type `o`"),
            (b"\x04\x08l+\x0a1234567890", "64 bits"),
            (b"\x04\x08{\x06{\x06{\x00", "byte 8: a key"),
        ] {
            let error = read(bytes).expect_err("invalid dump");
            assert!(error.contains(words), "{error}");
        }
        let deep = [&VERSION[..], &b"[\x06".repeat(100)].concat();
        assert!(read(&deep).is_err_and(|error| error.contains("without end")));
    }
}
