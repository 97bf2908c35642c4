//! Requests and responses of the API: their fields, headers, pages and bodies.

pub mod content_policy;
pub mod cors;
pub mod cursor;
pub mod input;
pub mod language;
pub mod list;
pub mod page;
pub mod pagination;
pub mod quality;
pub mod request;
pub mod resource;
pub mod response;
pub mod size;
pub mod ui;
