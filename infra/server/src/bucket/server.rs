//! Serves the bucket over HTTP, for functions in other processes. Requests with an `Authorization` header go to S3's
//! interface (path style), all others to the website.

use http::header::AUTHORIZATION;
use tokio::net::TcpListener;

use super::Bucket;
use super::website::Website;
use crate::http_server;

impl Bucket {
    /// Serves until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let website = Website::new(format!("/{}", self.name()), &self);
        http_server::serve(listener, move |request| {
            let (bucket, website) = (self.clone(), website.clone());
            async move {
                if request.headers().contains_key(AUTHORIZATION) {
                    bucket.respond(request).await
                } else {
                    website.respond(&request).await
                }
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::Client;
    use aws_sdk_s3::primitives::ByteStream;
    use http::{Request, StatusCode};
    use shared::aws::https;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn signed_requests_write_and_anyone_reads() {
        let bucket = Bucket::temporary("media").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(bucket.clone().serve(listener));
        let config = bucket.client().config().to_builder().endpoint_url(&url).http_client(https::aws_client());
        let client = Client::from_conf(config.build());
        let put = client.put_object().bucket("media").key("uploads/a.png").content_type("image/png");
        put.body(ByteStream::from_static(b"pixels")).send().await.unwrap();
        let object = client.get_object().bucket("media").key("uploads/a.png").send().await.unwrap();
        assert_eq!(object.body.collect().await.unwrap().to_vec(), b"pixels");
        let head = client.head_object().bucket("media").key("uploads/a.png").send().await.unwrap();
        assert_eq!((head.content_length, head.content_type.as_deref()), (Some(6), Some("image/png")));

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
