//! POST `sign_in/refresh` and `sign_in/end`. Both count as reads, and work in read-only mode.

use serde_json::json;
use shared::app::App;
use shared::app::admission::RateClass;
use shared::domain::sign_in::Account;
use shared::error::{Refusal, Result};
use shared::http::input::Input;
use shared::http::request::Call;
use shared::http::response::Answer;
use shared::policy;

use crate::{SignIn, number, text};

pub(crate) async fn refresh(sign_in: &SignIn, app: &App, call: &Call) -> Result<Answer> {
    admit(app, call).await?;
    let fields = call.json()?;
    let token = sign_in.seed(app).await?.read(text(call, &fields, "refresh_token")?).ok_or(Refusal::SignInFailed)?;
    let refreshed = app.store.refresh_session(&token, app.clock.now()).await?;
    let (user, next) = refreshed.ok_or(Refusal::SignInFailed)?;
    let (subject, own) = user.subject.clone().zip(user.account.clone()).ok_or(Refusal::SignInFailed)?;
    let account = Account { id: user.id, subject, epoch: own.epoch };
    Ok(Answer::ok(&json!({ "data": sign_in.session(app, &user, &account, &next).await? })))
}

pub(crate) async fn end(sign_in: &SignIn, app: &App, call: &Call) -> Result<Answer> {
    admit(app, call).await?;
    let fields = call.json()?;
    let mut input = Input::new(fields.clone());
    let everywhere = input.flag("everywhere");
    input.finish()?;
    if let Some(token) = sign_in.seed(app).await?.read(text(call, &fields, "refresh_token")?) {
        if everywhere {
            app.store.end_sessions(&token, number(&app.random), app.clock.now()).await?;
        } else {
            app.store.end_session(&token).await?;
        }
    }
    Ok(Answer::no_content())
}

async fn admit(app: &App, call: &Call) -> Result<()> {
    let exists = policy::sign_in(&app.config, call.is_from_elsewhere(&app.config.cors_origins));
    app.admit_everyone(call, RateClass::Read, exists, std::future::ready(Ok(()))).await
}
