//! POST `media`: an uploaded image, made safe to serve, into the bucket. What an image is and how it is made safe is
//! [`imaging`]'s to know, what of the body is taken, [`multipart`]'s.

pub mod bucket;
pub mod multipart;
pub mod worker;

use aws_sdk_s3::Client;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header;
use serde_json::json;
use shared::admission::{Door, Kind};
use shared::app::{App, Handler};
use shared::config::Config;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::{Answer, Call};
use shared::store::replays::Earlier;

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
        let once = app.once_of(call, &file)?;
        match app.store.earlier::<String>(once.as_ref()).await? {
            Earlier::Nothing => {}
            Earlier::Same(upload) => return Ok(stored(config, &upload)),
            Earlier::Other => return Err(FieldErrors::used_key().into()),
        }
        let picture = self.worker.run(move || imaging::clean(&file)).await?;
        let picture = picture.map_err(|refused| FieldErrors::one(FIELD, refused.to_string()))?;

        // Sent again before the first is answered, it is stored again under the same name.
        let name = once.as_ref().map_or_else(|| Name::new(&app.random), |once| Name::again(&config.visitor_salt, once));
        let key = name.upload(picture.format);
        Bucket::new(&self.objects, &config.media_bucket).put(&key, picture).await?;
        if let Some(once) = &once
            && !app.store.remember(once, &key).await?
            && app.store.earlier(Some(once)).await? != Earlier::Same(key.clone())
        {
            return Err(FieldErrors::used_key().into());
        }
        Ok(stored(config, &key))
    }
}

fn stored(config: &Config, upload: &str) -> Answer {
    let url = |key: &str| format!("{}/{key}", config.media_base_url);
    let thumbnail = Name::of_upload(upload).map(|name| url(&name.thumbnail()));
    Answer::created(&json!({ "url": url(upload), "thumbnail_url": thumbnail }))
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
