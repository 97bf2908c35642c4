//! GET `public/{type}/{id}/comments`.

use shared::app::App;
use shared::app::thread_list::ThreadRequest;
use shared::domain::viewer::Viewer;
use shared::error::Result;
use shared::http::pagination::ListAddress;
use shared::http::request::Call;
use shared::http::resource::CommentPresenter;
use shared::http::response::{Answer, Sharing};

/// The parameters that change the list. Links include only these, because a cached response may be served to callers
/// who sent other parameters.
const PARAMETERS: [&str; 6] = ["page", "per_page", "sort", "cursor", "lang", "include"];

/// Caches may show the old state of a deleted, edited, rejected or erased comment for one more minute, and for a day
/// while the service fails.
const SHARING: Sharing = Sharing::Public { fresh: 15, stale: 45, failing: 86_400 };

pub(crate) async fn thread(app: &App, call: &Call, kind: &str, record: &str) -> Result<Answer> {
    let request = ThreadRequest::new(app, call, kind, record).including_ui(call);
    let viewer = Viewer::nobody();
    let read = app.admit_everyone(call, request.class(), request.exists(), request.read(&viewer.owners)).await?;
    let presenter = CommentPresenter {
        language: call.named_language(),
        ..app.presenter(call, &viewer, &read.page.thread, &read.page.visitor_state)
    };
    let answer = request.answer(&ListAddress::of(call).keeping(&PARAMETERS), &presenter, &read)?;
    Ok(answer.shared(SHARING).by_origin(app.config.varies_by_origin()))
}
