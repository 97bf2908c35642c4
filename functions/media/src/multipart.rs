//! Reads the body of an upload: exactly one file, in the field `file`.

use bytes::Bytes;
use futures_util::stream;
use multer::{Constraints, Field, Multipart, SizeLimit};
use std::convert::Infallible;

const FIELD: &str = "file";
/// Maximum bytes of a body beyond the file. Other parts are refused, so this covers boundaries and headers.
const MAX_FRAMING_BYTES: u64 = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    NotMultipart,
    Malformed,
    Missing,
    UnknownField,
    Several,
    Empty,
    /// Results in status 413. All others result in 422 with an error on `file`.
    TooLarge,
}

impl From<multer::Error> for Rejected {
    fn from(error: multer::Error) -> Self {
        match error {
            multer::Error::UnknownField { .. } => Self::UnknownField,
            multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => Self::TooLarge,
            _ => Self::Malformed,
        }
    }
}

/// Returns the content of the file. Ignores its name and declared type.
pub async fn read_file(content_type: Option<&str>, body: Bytes, max_bytes: u64) -> Result<Bytes, Rejected> {
    let boundary = content_type
        .and_then(|content_type| multer::parse_boundary(content_type).ok())
        .filter(|boundary| (1..=70).contains(&boundary.len()))
        .ok_or(Rejected::NotMultipart)?;
    if body.is_empty() {
        return Err(Rejected::Missing);
    }
    if body.len() as u64 > max_bytes.saturating_add(MAX_FRAMING_BYTES) {
        return Err(Rejected::TooLarge);
    }
    let constraints = Constraints::new().allowed_fields(vec![FIELD]).size_limit(SizeLimit::new().per_field(max_bytes));
    let body = stream::iter([Ok::<_, Infallible>(body)]);
    let mut parts = Multipart::with_constraints(body, boundary, constraints);

    let file = parts.next_field().await?.ok_or(Rejected::Missing)?;
    let content = content(file).await?;
    if parts.next_field().await?.is_some() {
        return Err(Rejected::Several);
    }
    Ok(content)
}

async fn content(file: Field<'_>) -> Result<Bytes, Rejected> {
    let content = file.bytes().await?;
    if content.is_empty() { Err(Rejected::Empty) } else { Ok(content) }
}
