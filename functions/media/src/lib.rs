//! POST `media` stores an uploaded image, and DELETE `media/{name}` removes it. [`multipart`] extracts the file from
//! the body, [`imaging`] makes the image safe to serve, and [`bucket`] stores it.

pub mod bucket;
pub mod multipart;
pub mod worker;

use aws_sdk_s3::Client;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header;
use imaging::Refused;
use serde_json::{Value, json};
use shared::app::admission::{AuthRequirement, exists};
use shared::app::{App, Handler};
use shared::config::Config;
use shared::domain::language::Language;
use shared::domain::rate_limit::RateClass;
use shared::domain::texts::Errors;
use shared::error::{FieldErrors, Refusal, Result};
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;
use shared::store::idempotency::PriorResult;

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

    /// POST `media`
    async fn upload(&self, app: &App, call: &Call) -> Result<Answer> {
        let config = &app.config;
        let exists = policy::feature(config.features.media);
        app.admit(call, RateClass::Upload, exists, AuthRequirement::GuestsIf(config.guests.allowed)).await?;
        call.comment_key()?;

        let file = file(config, call).await?;
        let idempotency = app.idempotency_of(call, &file)?;
        let prior = async || app.store.prior_result::<Value>(idempotency.as_ref()).await;
        if prior().await? == PriorResult::Other {
            return Err(FieldErrors::used_key().into());
        }
        let picture = self.worker.run(move || imaging::clean(&file)).await?;
        let picture = picture.map_err(|refused| FieldErrors::one(FIELD, why_not(refused, call.language())))?;

        let again = |request| Name::again(&config.visitor_salt, request, &picture);
        let name = idempotency.as_ref().map_or_else(|| Name::new(&app.random, &picture), again);
        let (key, width, height) = (name.upload(picture.format), picture.width, picture.height);
        let bucket = self.bucket(config);
        // Read again, because an identical request may have finished while this request waited for the worker.
        if let PriorResult::Same(_) = prior().await? {
            // An image that was removed since the first request stays removed.
            if !bucket.has(&key).await? {
                return Err(Refusal::NotFound.into());
            }
        } else {
            bucket.put(&key, picture).await?;
            if let Some(idempotency) = &idempotency
                && !app.store.remember(idempotency, name.as_str()).await?
                && !matches!(prior().await?, PriorResult::Same(_))
            {
                return Err(FieldErrors::used_key().into());
            }
        }
        let url = |key: &str| format!("{}/{key}", config.media_base_url);
        let thumbnail = url(&name.thumbnail());
        let answer = json!({ "url": url(&key), "thumbnail_url": thumbnail, "width": width, "height": height });
        Ok(Answer::created(&answer))
    }

    /// DELETE `media/{name}`. Also works when uploads are off, so that earlier uploads can be removed.
    async fn remove(&self, app: &App, call: &Call, file: &str) -> Result<Answer> {
        let file = Name::of_file(file).ok_or(Refusal::NotFound);
        let moderator = app.admit_moderator(call, RateClass::Write, exists(&file)).await?;
        let (name, format) = file?;
        let bucket = self.bucket(&app.config);
        // Logged first, so that no image is removed without a log entry.
        if bucket.has(&name.upload(format)).await? {
            app.store.log_removal_of_image(app.by(&moderator)?).await?;
        }
        bucket.remove(&name, format).await?;
        Ok(Answer::no_content())
    }

    fn bucket<'a>(&'a self, config: &'a Config) -> Bucket<'a> {
        Bucket::new(&self.objects, &config.media_bucket)
    }
}

async fn file(config: &Config, call: &Call) -> Result<Bytes, Refusal> {
    let texts = Errors::of(call.language());
    let body = Bytes::copy_from_slice(&call.body);
    let read = multipart::read_file(call.header(header::CONTENT_TYPE), body, config.media_max_bytes as u64);
    read.await.map_err(|rejected| match rejected {
        Rejected::TooLarge => Refusal::PayloadTooLarge,
        Rejected::Empty => FieldErrors::one(FIELD, texts.empty_file()),
        Rejected::NotMultipart
        | Rejected::Malformed
        | Rejected::Missing
        | Rejected::UnknownField
        | Rejected::Several => FieldErrors::one(FIELD, texts.no_file()),
    })
}

fn why_not(refused: Refused, language: Language) -> &'static str {
    let texts = Errors::of(language);
    match refused {
        Refused::UnknownFormat => texts.format(),
        Refused::TooManyPixels => texts.pixels(),
        Refused::TooLongAnimation => texts.animation(),
        Refused::Damaged => texts.damaged(),
        Refused::UnsupportedJpeg => texts.unsupported_jpeg(),
        Refused::Incompressible => texts.complex(),
    }
}

impl Handler for Media {
    fn handle<'a>(&'a self, app: &'a App, call: &'a Call) -> BoxFuture<'a, Result<Answer>> {
        Box::pin(async move {
            match (call.method.as_str(), call.path().as_slice()) {
                ("POST", ["media"]) => self.upload(app, call).await,
                ("DELETE", ["media", file]) => self.remove(app, call, file).await,
                _ => app.unrouted(call).await,
            }
        })
    }
}
