//! The size limit of lists. Lambda returns at most six megabytes, which contain the body as an escaped JSON string.

use serde::Serialize;

use crate::error::{FieldErrors, Refusal};

/// Maximum bytes of the escaped body, or of its items in [`fits`] and [`check`]. The rest of the six megabytes is for the
/// list's envelope or the page's HTML, and the response's status and headers.
pub const MAX_ANSWER: usize = 5_900_000;

pub fn fits(data: &[impl Serialize]) -> bool {
    data.iter().map(payload).sum::<usize>() <= MAX_ANSWER
}

/// Refuses a page that does not fit, and reports how many of its items would fit.
pub fn check(data: &[impl Serialize]) -> Result<(), Refusal> {
    let mut room = MAX_ANSWER;
    let fitting = data.iter().take_while(|resource| {
        let size = payload(resource);
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let fitting = fitting.count();
    if fitting == data.len() {
        return Ok(());
    }
    let most = fitting.max(1);
    Err(FieldErrors::one("per_page", format!("These comments are too long for one page. Use a per_page of {most}.")))
}

/// Bytes of a resource in Lambda's response, where quotes and backslashes are escaped again.
fn payload(resource: &impl Serialize) -> usize {
    let json = serde_json::to_vec(resource).unwrap_or_default();
    json.len() + json.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count() + 1
}
