//! The native format, which contains the records themselves.

use jiff::tz::TimeZone;
use serde::Deserialize;

use super::super::record::{FORMAT, Head, Record, VERSION};
use super::super::source::{ReadError, Reader};
use super::json::{self, Attributes};
use super::{Sink, comment_record};

pub(super) fn read(input: Reader, _zone: &TimeZone, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut number = 0;
    let mut announced = Announced::default();
    json::read(input, &[&[]], &mut |_, value| {
        number += 1;
        let record = Record::deserialize(&value)
            .map_err(|error| ReadError::whole(format_args!("record {number} is not valid: {error}")))?;
        if let Record::Head(head) = &record {
            check(head)?;
            announced.end()?;
            announced = Announced { records: head.records, read: 0 };
        } else {
            announced.read += 1;
        }
        sink(match record {
            Record::Comment(comment) => comment_record(*comment, value.is_oversized()),
            record => record,
        })
    })?;
    announced.end()
}

fn check(head: &Head) -> Result<(), ReadError> {
    if head.format == FORMAT && head.version == VERSION {
        return Ok(());
    }
    let (format, version) = (&head.format, head.version);
    Err(ReadError::whole(format_args!("is in format {format} {version}, not {FORMAT} {VERSION}")))
}

/// The number of records that a head announces, if any, and the number read so far.
#[derive(Default)]
struct Announced {
    records: Option<u64>,
    read: u64,
}

impl Announced {
    fn end(&self) -> Result<(), ReadError> {
        match self.records.filter(|records| self.read < *records) {
            Some(records) => Err(ReadError::whole(format_args!("ends after {} of {records} records", self.read))),
            None => Ok(()),
        }
    }
}
