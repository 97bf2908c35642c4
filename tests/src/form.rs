//! Builds files and request bodies for uploads.

/// Returns a one-pixel GIF with this red value.
#[must_use]
pub fn dot(red: u8) -> Vec<u8> {
    let start: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0";
    [start, &[red, 0, 0, 255, 255, 255], b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"].concat()
}

/// Returns the body of `multipart/form-data` with these parts: field, file name and content.
#[must_use]
pub fn form(boundary: &str, parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, name, content) in parts {
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
             Content-Type: image/png\r\n\r\n"
        );
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(format!("--{boundary}--\r\n").into_bytes());
    body
}
