//! POST `media`: an uploaded image, made safe to serve, into the bucket. What an image is and how it is made safe is
//! [`image`]'s to know, what of the body is taken, [`multipart`]'s.

pub mod bucket;
pub mod image;
pub mod multipart;
pub mod worker;

use aws_sdk_s3::Client;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header;
use serde_json::json;
use shared::admission::{Door, Kind};
use shared::app::{App, Handler};
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::{Answer, Call};

use crate::bucket::{Bucket, Name};
use crate::multipart::Rejected;
use crate::worker::Worker;

const FIELD: &str = "file";

pub struct Media {
    objects: Client,
    worker: Worker,
}

impl Media {
    #[must_use]
    pub fn new(objects: Client) -> Self {
        Self { objects, worker: Worker::default() }
    }

    /// POST `media` (spec, section 4.11).
    async fn upload(&self, app: &App, call: &Call) -> Result<Answer> {
        let config = &app.config;
        let there = if config.features.media { Ok(()) } else { Err(Refusal::NotFound) };
        app.admit(call, Kind::Upload, there, Door::Guests(config.guests.allowed)).await?;

        let body = Bytes::copy_from_slice(&call.body);
        let read = multipart::read_file(call.header(header::CONTENT_TYPE), body, config.media_max_bytes as u64);
        let file = read.await.map_err(|rejected| match rejected {
            Rejected::TooLarge => Refusal::PayloadTooLarge,
            other => FieldErrors::one(FIELD, other.to_string()),
        })?;
        let picture = self.worker.run(move || image::clean(&file)).await?;
        let picture = picture.map_err(|refused| FieldErrors::one(FIELD, refused.to_string()))?;

        let name = Name::new(&app.random);
        let key = name.upload(picture.format);
        Bucket::new(&self.objects, &config.media_bucket).put(&key, picture).await?;
        let url = |key: &str| format!("{}/{key}", config.media_base_url);
        Ok(Answer::created(&json!({ "url": url(&key), "thumbnail_url": url(&name.thumbnail()) })))
    }
}

impl Handler for Media {
    fn handle<'a>(&'a self, app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
        Box::pin(async move {
            match (call.method.as_str(), call.path().as_slice()) {
                ("POST", ["media"]) => self.upload(app, call).await,
                _ => app.unrouted(call).await,
            }
        })
    }
}
