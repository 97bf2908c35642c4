//! The native format: the records as they are.

use serde::Deserialize;

use super::super::record::{FORMAT, Record, VERSION};
use super::super::source::{ReadError, Reader};
use super::{Sink, json};

pub(super) fn read(input: &mut Reader, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut number = 0;
    json::read(input, &[&[]], &mut |_, value| {
        number += 1;
        let record = Record::deserialize(&value)
            .map_err(|error| ReadError::whole(format_args!("record {number} is not valid: {error}")))?;
        if let Record::Head(head) = &record
            && (head.format != FORMAT || head.version != VERSION)
        {
            let (format, version) = (&head.format, head.version);
            return Err(ReadError::whole(format_args!("is of format {format} {version}, not {FORMAT} {VERSION}")));
        }
        sink(record)
    })
}
