//! Reads files from upload bodies, both valid and malformed.

use bytes::Bytes;
use media::multipart::{Rejected, read_file};

const MAX: u64 = 1000;

async fn read(body: impl AsRef<[u8]>) -> Result<Bytes, Rejected> {
    let body = Bytes::copy_from_slice(body.as_ref());
    read_file(Some("multipart/form-data; boundary=XyZ"), body, MAX).await
}

fn part(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "--XyZ\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"../../a.html\"\r\nContent-Type: text/html\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn body(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), b"--XyZ--\r\n".to_vec()].concat()
}

#[tokio::test]
async fn the_content_of_the_field_file_is_taken_byte_for_byte() {
    let content: Vec<u8> = (0..=255).chain(*b"\r\n--Xy\r\n--").collect();
    assert_eq!(read(body(&[part("file", &content)])).await.unwrap(), content);
}

#[tokio::test]
async fn a_boundary_may_be_quoted() {
    let body = Bytes::from(body(&[part("file", b"abc")]));
    let content_type = "Multipart/Form-Data; charset=utf-8; boundary=\"XyZ\"";
    assert_eq!(read_file(Some(content_type), body, MAX).await.unwrap(), "abc");
}

#[tokio::test]
async fn a_body_without_a_file_is_rejected() {
    assert_eq!(read(body(&[])).await, Err(Rejected::Missing));
    assert_eq!(read(b"").await, Err(Rejected::Missing));
}

#[tokio::test]
async fn an_empty_file_is_rejected() {
    assert_eq!(read(body(&[part("file", b"")])).await, Err(Rejected::Empty));
}

#[tokio::test]
async fn several_files_are_rejected() {
    assert_eq!(read(body(&[part("file", b"a"), part("file", b"b")])).await, Err(Rejected::Several));
}

#[tokio::test]
async fn another_field_is_rejected_before_or_after_the_file_or_alone() {
    for parts in [
        vec![part("image", b"a")],
        vec![part("file", b"a"), part("x", b"b")],
        vec![part("x", b"a"), part("file", b"b")],
        vec![part("file[]", b"a")],
        vec![part("FILE", b"a")],
    ] {
        assert_eq!(read(body(&parts)).await, Err(Rejected::UnknownField));
    }
    let nameless = b"--XyZ\r\nContent-Disposition: form-data\r\n\r\na\r\n--XyZ--\r\n";
    assert_eq!(read(nameless).await, Err(Rejected::UnknownField));
}

#[tokio::test]
async fn a_malformed_body_is_rejected() {
    let whole = body(&[part("file", b"abc")]);
    for len in 1..whole.len() - 4 {
        assert!(read(&whole[..len]).await.is_err(), "{len} of {} bytes", whole.len());
    }
    for body in [&b"{}"[..], b"--other\r\n\r\n", b"--XyZ\r\nno colon\r\n\r\na\r\n--XyZ--\r\n", &[0xFF; 50]] {
        assert_eq!(read(body).await, Err(Rejected::Malformed));
    }
}

#[tokio::test]
async fn a_body_of_another_type_or_without_a_boundary_is_rejected() {
    let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
    for content_type in [
        None,
        Some(""),
        Some("image/png"),
        Some("application/json"),
        Some("multipart/form-data"),
        Some("multipart/form-data; boundary="),
        Some(&*long),
    ] {
        let body = Bytes::from(body(&[part("file", b"abc")]));
        assert_eq!(read_file(content_type, body, MAX).await, Err(Rejected::NotMultipart), "{content_type:?}");
    }
}

#[tokio::test]
async fn a_file_of_the_limit_is_taken_and_one_byte_more_is_too_large() {
    assert!(read(body(&[part("file", &[1; 1000])])).await.is_ok());
    assert_eq!(read(body(&[part("file", &[1; 1001])])).await, Err(Rejected::TooLarge));
    assert_eq!(read(vec![b'-'; 100_000]).await, Err(Rejected::TooLarge));
}

#[tokio::test]
async fn more_headers_than_a_part_needs_are_rejected() {
    let headers = (0..40).map(|n| format!("X-{n}: a\r\n")).collect::<Vec<_>>().concat();
    let body = format!("--XyZ\r\n{headers}Content-Disposition: form-data; name=\"file\"\r\n\r\na\r\n--XyZ--\r\n");
    assert_eq!(read(body).await, Err(Rejected::Malformed));
}
