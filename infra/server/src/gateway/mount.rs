//! Paths on the API's port that aren't part of the API.

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response, StatusCode};
use shared::domain::origin;

use super::BoxFuture;

pub struct Mount {
    /// Begins with a slash and ends without one. `/` matches only that path.
    pub prefix: String,
    pub handler: Arc<dyn Fn(Request<Bytes>) -> BoxFuture<Response<Bytes>> + Send + Sync>,
}

impl Mount {
    /// A page only for the user of this machine. Checks `Host`, so that a site whose name resolves to this machine
    /// can't read the page.
    #[must_use]
    pub fn for_this_machine<A>(prefix: &str, page: impl Fn(Request<Bytes>) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Response<Bytes>> + Send + 'static,
    {
        let handler = move |request: Request<Bytes>| -> BoxFuture<Response<Bytes>> {
            if is_this_machine(&request) { Box::pin(page(request)) } else { Box::pin(ready(elsewhere())) }
        };
        Self { prefix: prefix.to_owned(), handler: Arc::new(handler) }
    }
}

fn is_this_machine(request: &Request<Bytes>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| origin::authority(host.to_str().ok()?));
    host.is_some_and(|host| origin::is_loopback(host.host()))
}

fn elsewhere() -> Response<Bytes> {
    let mut response = Response::new("This page is available only at 127.0.0.1 and localhost.".into());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_local_page_is_served_only_under_loopback_names() {
        let mount = Mount::for_this_machine("/page", |_| ready(Response::new("secret".into())));
        for (host, status) in [
            ("127.0.0.1:3000", 200),
            ("localhost:3000", 200),
            ("localhost", 200),
            ("[::1]:3000", 200),
            ("rebound.example:3000", 404),
            ("[::1]", 200),
            ("127.0.0.1.example", 404),
            ("127.0.0.1:1@evil", 404),
            ("localhost:@evil.example", 404),
            ("evil.localhost.example:3000", 404),
            ("", 404),
        ] {
            let request = Request::builder().header(HOST, host).body(Bytes::new()).unwrap();
            assert_eq!((mount.handler)(request).await.status(), status, "{host}");
        }
    }
}
