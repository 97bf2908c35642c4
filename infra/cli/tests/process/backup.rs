//! Backups of a running service, and restores from them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use tests::{Service, dot};

use crate::serve::{guest, serve, serve_command, start, token};
use crate::{assert_in_order, done, fails, limited, on_data, printed, unprivileged};

fn back_up(data_dir: &Path, out: &Path) -> Command {
    on_data(&["backup", "--out", out.to_str().unwrap()], data_dir)
}

fn restore(backup: &Path, data_dir: &Path) -> Command {
    on_data(&["restore", backup.to_str().unwrap()], data_dir)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_writes_has_what_was_acknowledged_before_and_restores_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, out) = (folder.path().join("data"), folder.path().join("copy"), folder.path().join("b.tar"));
    let (service, address) = start(serve_command(&data, &[]).env("SVC_WRITE_LIMIT", "1000000"));
    let ada = guest(&service, &address).with_token(&token(&data));
    let image = ada.upload(&[("file", "a.gif", &dot(0))]).await.ok(201).json;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (ada, stop) = (ada.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let parent = ada.comment("posts/2", "parent").await;
            while !stop.load(Ordering::Relaxed) {
                let reply = ada.reply("posts/2", parent, "x").await;
                ada.like(reply).await.ok(200);
            }
        })
    };
    fs::write(&out, "an older file").unwrap();
    for _ in 0..3 {
        let before = ada.comment("posts/1", "kept").await;
        done(back_up(&data, &out));
        assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
        let printed = printed(restore(&out, &copy));
        let time = printed.split_whitespace().find_map(|word| word.trim_matches(';').parse::<jiff::Timestamp>().ok());
        assert!(time.is_some_and(|time| time <= jiff::Timestamp::now()), "{printed}");
        assert_in_order(&copy);
        let (second, address) = serve(&copy, &[]);
        let ids = guest(&second, &address).list("posts/1", "per_page=50").await.ids();
        assert!(ids.contains(&before), "{ids:?}");
        let path = image["url"].as_str().unwrap().split_once(".org").unwrap().1;
        second.at(&format!("http://{address}")).send_at(http::Method::GET, path, "").await.ok(200);
        // The copy has the same secrets.
        guest(&second, &address).with_token(&token(&data)).get("moderation/comments").await.ok(200);
        assert!(second.stop().success());
        fs::remove_dir_all(&copy).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let left = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with(".tmp")), "the snapshot is gone");
    assert!(service.stop().success());
}

#[tokio::test]
async fn a_stopped_service_is_backed_up_to_a_pipe_too() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (service, address) = serve(&data, &[]);
    let ada = guest(&service, &address).with_token(&token(&data));
    let comment = ada.comment("posts/1", "kept").await;
    assert!(service.stop().success());
    let piped = done(on_data(&["backup", "--out", "-"], &data)).stdout;
    let names: Vec<String> = tar_names(&piped);
    for name in ["table.db", "visitor-salt", "sign-in-seed", "jwt-secret", "manifest.json"] {
        assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
    }
    let file = folder.path().join("b.tar");
    fs::write(&file, piped).unwrap();
    fs::create_dir(&copy).unwrap();
    done(restore(&file, &copy));
    assert!(printed(on_data(&["export"], &copy)).contains(&comment.to_string()));
}

#[tokio::test]
async fn a_running_development_service_can_be_backed_up_even_if_its_path_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let (out, copy) = (folder.path().join("b.tar"), folder.path().join("copy"));
    let long = folder.path().join("a".repeat(100));
    for (data, words) in
        [(folder.path().join("data"), &["--port", "0"][..]), (long, &["--port", "0", "--services-only"])]
    {
        let ready = if words.len() > 2 { "# listening" } else { "moderator" };
        let service = Service::start(&mut on_data(words, &data), ready);
        done(back_up(&data, &out));
        drop(service);
        done(restore(&out, &copy));
        fs::remove_dir_all(&copy).unwrap();
    }
}

fn tar_names(bytes: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(bytes);
    archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().to_str().unwrap().to_owned()).collect()
}

fn refused(command: Command, says: &str) {
    fails(command, 3, &[says]);
}

#[test]
fn a_failed_backup_or_restore_exits_with_3_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, out) = (path("data"), path("b.tar"));
    refused(back_up(&data, &out), "data");
    assert!(!out.exists() && !data.exists());
    let (service, _) = serve(&data, &[]);
    done(back_up(&data, &out));
    refused(back_up(&data, &path("none/b.tar")), "none/b.tar");
    refused(restore(&out, &data), "not empty");
    assert!(service.stop().success());
    refused(restore(&out, &data), "not empty");

    refused(restore(&path("missing.tar"), &path("copy")), "missing.tar");
    refused(restore(folder.path(), &path("copy")), "directory");
    refused(restore(&out, &out), "b.tar is a file");
    symlink("gone", path("link")).unwrap();
    for below in ["link", "link/new"] {
        refused(restore(&out, &path(below)), "link is a link to a directory that doesn't exist");
        assert!(path("link").is_symlink() && !path("gone").exists());
    }

    let evil_file = path("evil.tar");
    let mut evil = tar::Builder::new(File::create(&evil_file).unwrap());
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..7].copy_from_slice(b"../evil");
    header.set_size(1);
    header.set_cksum();
    evil.append(&header, &b"x"[..]).unwrap();
    evil.finish().unwrap();
    refused(restore(&evil_file, &path("copy")), "evil.tar");
    assert!(!path("evil").exists() && !path("copy").exists());

    refused(limited(16, &restore(&out, &path("copy"))), "check its free space");
    assert!(!path("copy").exists());

    // A directory that contains only a lock file, as a service leaves it if its port is taken.
    fs::create_dir(path("locked")).unwrap();
    let lock = fs::File::create(path("locked/lock")).unwrap();
    lock.lock().unwrap();
    refused(restore(&out, &path("locked")), "another process uses");
    drop(lock);
    done(restore(&out, &path("locked")));
}

#[test]
fn a_backup_that_cannot_read_or_write_a_file_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("b.tar"));
    let files = [data.join("jwt-secret"), data.join("objects/media/a"), data.join("objects/media")];
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(start(&mut unprivileged(&serve_command(&data, &[]))).0.stop().success());
    fs::create_dir_all(&files[2]).unwrap();
    fs::write(&files[1], "x").unwrap();
    let back_up = |out: &Path| unprivileged(&back_up(&data, out));
    for file in files {
        let before = fs::metadata(&file).unwrap().permissions();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        refused(back_up(&out), &format!("{}: Permission denied", file.display()));
        fs::set_permissions(&file, before).unwrap();
    }
    let full = |kilobytes: u32, out: &Path| limited(kilobytes, &back_up(out));
    refused(full(60, &out), &format!("copying the table in {}: ", data.display()));
    let noise = (0..1_u32 << 20).flat_map(|n| n.wrapping_mul(0x9E37_79B9).rotate_left(n % 31).to_le_bytes());
    fs::write(data.join("objects/media/large"), noise.collect::<Vec<u8>>()).unwrap();
    for out in [out, folder.path().join("b.tar.gz")] {
        refused(full(2000, &out), &format!("{}: File too large", out.display()));
    }
}

#[test]
fn restoring_a_truncated_or_changed_backup_or_another_file_exits_with_3_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (data, out, damaged) = (path("data"), path("b.tar"), path("damaged.tar"));
    assert!(serve(&data, &[]).0.stop().success());
    done(back_up(&data, &out));
    let names =
        || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>();
    let refuse = |content: &[u8], says: &str| {
        fs::write(&damaged, content).unwrap();
        let before = names();
        refused(restore(&damaged, &path("new/deep/copy")), says);
        fs::create_dir(path("copy")).unwrap();
        refused(restore(&damaged, &path("copy")), "damaged.tar: ");
        fs::remove_dir(path("copy")).unwrap();
        assert_eq!(names(), before);
    };
    let whole = fs::read(&out).unwrap();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&whole).unwrap();
    for whole in [whole, compressed.finish().unwrap()] {
        let end = whole.len();
        for cut in [1, 2, 10, end / 2, end - 513, end - 9, end - 8, end - 1] {
            refuse(&whole[..cut], "damaged.tar: ");
        }
        refuse(&whole[1..], "is not a backup");
        for at in [end / 2, 600] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            refuse(&flipped, "damaged.tar: ");
        }
        refuse(&[&whole[..], b"more"].concat(), "damaged or incomplete");
        refuse(&[&whole[..], &whole].concat(), "damaged or incomplete");
    }
    refuse(b"", "is empty; pass a file that backup wrote");
    refuse(&b"no archive at all, and longer than a header\n".repeat(100), "is not a backup");
    refuse(&[0; 1024], "has no manifest");
    let mut other = tar::Builder::new(Vec::new());
    other.append_path_with_name(&out, "b.tar").unwrap();
    refuse(&other.into_inner().unwrap(), "has no manifest");
}

#[test]
fn a_directory_of_a_newer_version_or_a_killed_restore_exits_with_3_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (service, _) = serve(&data, &[]);
    assert!(service.stop().success());
    assert_eq!(fs::read_to_string(data.join("version")).unwrap(), "1\n");
    let commands: [&[&str]; 5] = [&["serve"], &["check"], &["export"], &["backup", "--out", "-"], &["moderate"]];
    let all_refused = |says: &str| {
        let names = || {
            let entries = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = entries.map(|path| (fs::read(&path).unwrap_or_default(), path)).collect();
            files.sort();
            files
        };
        let before = names();
        for words in commands {
            fails(on_data(words, &data).env("SVC_PUBLIC_URL", "https://a.example"), 3, &[says]);
        }
        assert!(names() == before);
    };
    fs::write(data.join("version"), "2\n").unwrap();
    all_refused("newer version");
    for damaged in ["", "\n", "\0\0"] {
        fs::write(data.join("version"), damaged).unwrap();
        all_refused("version is damaged; restore it from a backup");
    }
    fs::write(data.join("version"), "1\n").unwrap();
    fs::create_dir(data.join(".tmp-restore")).unwrap();
    all_refused("restore");
}
