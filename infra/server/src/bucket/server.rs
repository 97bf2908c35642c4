//! Serves the bucket over HTTP, for functions in other processes. Signed requests go to S3's interface (path style),
//! all others to the website.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use s3s::Body;
use tokio::net::TcpListener;

use super::Bucket;
use super::website::Website;
use crate::http_server::{self, empty};

impl Bucket {
    /// Serves until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let website = Website::new(format!("/{}", self.name()), &self);
        http_server::serve(listener, move |request| {
            let (bucket, website) = (self.clone(), website.clone());
            async move {
                if request.headers().contains_key(AUTHORIZATION) {
                    bucket.respond_to_signed(request).await
                } else {
                    website.respond(&request).await
                }
            }
        })
        .await;
    }

    async fn respond_to_signed(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.respond(request.map(Body::from)).await.unwrap_or_else(|error| {
            tracing::error!("the bucket failed: {error}");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::Client;
    use aws_sdk_s3::config::Credentials;
    use aws_sdk_s3::primitives::ByteStream;
    use shared::aws::https;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn signed_requests_write_and_anyone_reads() {
        let bucket = Bucket::temporary("media").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(bucket.clone().serve(listener));
        let client = |key: &str| {
            let config = bucket.client().config().to_builder().endpoint_url(&url).http_client(https::aws_client());
            Client::from_conf(config.credentials_provider(Credentials::new(key, "local", None, None, "test")).build())
        };
        let put = |key: &str| {
            let put = client(key).put_object().bucket("media").key("uploads/a.png").content_type("image/png");
            put.body(ByteStream::from_static(b"pixels")).send()
        };
        assert!(put("stranger").await.is_err());
        put("local").await.unwrap();
        let object = client("local").get_object().bucket("media").key("uploads/a.png").send().await.unwrap();
        assert_eq!(object.body.collect().await.unwrap().to_vec(), b"pixels");

        let browser = https::Client::new(Duration::from_secs(5));
        let ask = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(format!("{url}{path}"));
            browser.send(request.body(String::new()).unwrap())
        };
        let read = ask("GET", "/media/uploads/a.png").await.unwrap();
        assert_eq!((read.status(), read.body().as_slice()), (StatusCode::OK, &b"pixels"[..]));
        assert_eq!(read.headers()["content-type"], "image/png");
        assert_eq!(ask("PUT", "/media/uploads/a.png").await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(ask("GET", "/media").await.unwrap().status(), StatusCode::NOT_FOUND);
        server.abort();
    }
}
