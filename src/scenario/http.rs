//! As much of HTTP/1.1 as a model server on 127.0.0.1 needs: one request in, one answer out, the connection kept.
//!
//! Knows nothing of scenarios or of what the bodies mean.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const HEAD_BYTES_MAX: u64 = 64 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request, read to its end.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Will the client send another one on this connection?
    pub(super) fn keeps_connection(&self) -> bool {
        !self.headers.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Reads the next request; `None` when the client has closed the connection.
///
/// # Errors
/// What the connection says, or `InvalidData` for what is no HTTP request.
pub(super) async fn read_request(stream: &mut (impl AsyncBufRead + AsyncWrite + Unpin)) -> io::Result<Option<Request>> {
    let Some(first) = read_line(stream).await? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(bad("the request line"));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let headers = read_headers(stream).await?;
    if headers.get("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        stream.flush().await?;
    }
    let is_chunked =
        headers.get("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    let body = if is_chunked { read_chunked(stream).await? } else { read_sized(stream, &headers).await? };
    Ok(Some(Request { method, path, headers, body }))
}

async fn read_headers(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    let mut bytes = 0;
    loop {
        let line = read_line(stream).await?.ok_or_else(|| bad("the head: it ends too early"))?;
        if line.is_empty() {
            return Ok(headers);
        }
        bytes += line.len() as u64;
        if bytes > HEAD_BYTES_MAX {
            return Err(bad("the head: it is too long"));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header"))?;
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
}

async fn read_sized(stream: &mut (impl AsyncRead + Unpin), headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let length: usize = match headers.get("content-length") {
        Some(length) => length.parse().map_err(|_| bad("content-length"))?,
        None => 0,
    };
    let mut body = Vec::new();
    read_part(stream, &mut body, length).await?;
    Ok(body)
}

async fn read_chunked(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = read_line(stream).await?.ok_or_else(|| bad("a chunk: it ends too early"))?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(size, 16).map_err(|_| bad("a chunk's size"))?;
        if length == 0 {
            while read_line(stream).await?.is_some_and(|line| !line.is_empty()) {}
            return Ok(body);
        }
        read_part(stream, &mut body, length).await?;
        read_line(stream).await?;
    }
}

async fn read_part(stream: &mut (impl AsyncRead + Unpin), body: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let start = body.len();
    if length > BODY_BYTES_MAX - start.min(BODY_BYTES_MAX) {
        return Err(bad("the body: it is too long"));
    }
    body.resize(start + length, 0);
    stream.read_exact(&mut body[start..]).await.map(drop)
}

/// A line without its end; `None` at the end of the connection.
async fn read_line(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut limited = stream.take(HEAD_BYTES_MAX);
    if limited.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') {
        return Err(bad("a line: it doesn't end"));
    }
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(Some(line))
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no valid HTTP request: {what}"))
}

/// An answer's head; `length` is `None` for a body in chunks.
pub(super) fn head(status: u16, content_type: &str, length: Option<usize>, more: &BTreeMap<String, String>) -> Vec<u8> {
    let size = length.map_or("transfer-encoding: chunked".to_owned(), |length| format!("content-length: {length}"));
    let mut head = format!("HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n{size}\r\n", reason(status));
    for (name, value) in more {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// A whole answer with a body of known length.
pub(super) fn answer(status: u16, content_type: &str, body: &[u8], more: &BTreeMap<String, String>) -> Vec<u8> {
    let mut bytes = head(status, content_type, Some(body.len()), more);
    bytes.extend_from_slice(body);
    bytes
}

/// Appends one chunk of a body in chunks.
pub(super) fn push_chunk(bytes: &mut Vec<u8>, data: &str) {
    bytes.extend_from_slice(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes());
}

/// What ends a body in chunks.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
