//! Operator commands, run alongside a service.

use std::time::Duration;

use media::bucket::Bucket;
use server::settings::MEDIA;
use shared::domain::ids::salt_fingerprint;
use shared::domain::person::Who;
use shared::domain::secret::Secret;
use shared::domain::time::Clock;
use shared::store::Store;
use transfer::export::ExportError;
use transfer::import::write::{Importer, WriteError, WriteLimits};
use transfer::import::{Format, Import, Report, Users};
use transfer::lease::Lease;
use transfer::person::PersonError;
use transfer::person::erase::{Eraser, Receipt};

use crate::SALT;

pub async fn erase(
    store: &Store,
    bucket: &server::bucket::Bucket,
    clock: Clock,
    who: Who,
    patience: Duration,
) -> Result<Receipt, PersonError> {
    let salt = Secret::from(SALT.to_owned());
    let lease = Lease { store, clock: clock.clone(), holder: "one".to_owned(), patience: Duration::ZERO };
    let objects = bucket.client();
    let bucket = Bucket::new(&objects, MEDIA);
    Eraser { store, bucket, salt: &salt, clock, lease, patience, machine: None }.erase(who).await
}

pub async fn export(store: &Store) -> Result<Vec<u8>, ExportError> {
    let salt = salt_fingerprint(&Secret::from("a salt".to_owned()));
    let mut file = Vec::new();
    transfer::export::export(store, salt, &mut file).await?;
    Ok(file)
}

/// Imports a file in the native format, with up to `embedded` inline replies per parent. Stops at the first permanent
/// fault.
pub async fn import(store: &Store, file: &[u8], embedded: usize, clock: Clock) -> Result<Report, WriteError> {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("export.jsonl");
    std::fs::write(&path, file).expect("the file is written");
    let mut staging = Import::new(Format::Native, vec![path]).read(directory.path(), |_| ()).expect("a file of ours");
    let mut importer = Importer {
        staging: &mut staging,
        store: &store.clone().embedding(embedded),
        users: &Users::default(),
        prefix: Format::Native.name(),
        clock,
        table: WriteLimits::default(),
        other_salt: None,
    };
    importer.run(&mut |_| ()).await?;
    Ok(staging.report())
}
