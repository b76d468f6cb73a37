//! Who asks: an account at the authority, made once and kept.

use crate::http::Asker;
use crate::plan::Plan;
use crate::store::Store;
use crate::trouble::Trouble;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use samovar_outbound::NoRoots;
use serde::{Deserialize, Serialize};
use std::io;

/// What is kept of it.
#[derive(Deserialize, Serialize)]
struct Kept {
    credentials: AccountCredentials,
    /// Whom the authority knows to write to.
    email: Option<String>,
}

/// An account, and how its authority is asked.
pub(crate) struct Known {
    pub(crate) account: Account,
    pub(crate) asker: Asker,
}

/// The account that is kept, else a new one.
pub(crate) async fn open(plan: &Plan, store: &Store) -> Result<Known, Trouble> {
    let asker = Asker::new(plan.roots.as_deref()).map_err(|NoRoots(path)| {
        let what = format!("no certificates that could be trusted in `{}`", path.display());
        Trouble::new(what, "install ca-certificates, or set `acme.ca` for a private authority")
    })?;
    let kept = store.account().map_err(|error| unkept("cannot read the account", store, &error))?;
    let account = match kept.as_deref().map(serde_json::from_slice::<Kept>) {
        Some(Ok(kept)) => reopen(plan, store, &asker, kept).await,
        Some(Err(error)) => {
            let put_aside = store.put_account_aside();
            tracing::warn!(
                %error,
                ?put_aside,
                folder = %store.folder().display(),
                "what is kept of an ACME account cannot be read: another one is made"
            );
            make(plan, store, &asker).await
        }
        None => make(plan, store, &asker).await,
    };
    let account = account.map_err(|trouble| trouble.after(asker.told()))?;
    Ok(Known { account, asker })
}

async fn reopen(plan: &Plan, store: &Store, asker: &Asker, kept: Kept) -> Result<Account, Trouble> {
    let Kept { credentials, email } = kept;
    // The credentials can be used once, and written once more.
    let copy = serde_json::to_vec(&credentials).unwrap_or_default();
    let builder = Account::builder_with_http(Box::new(asker.clone()));
    let account = builder.from_credentials(credentials).await;
    let account = account.map_err(|e| Trouble::of("the authority's directory", &e, None))?;
    if email == plan.email {
        return Ok(account);
    }
    let contact = contact(plan);
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    match account.update_contacts(&contact).await {
        Ok(()) => {
            if let Ok(credentials) = serde_json::from_slice(&copy) {
                keep(store, &Kept { credentials, email: plan.email.clone() })?;
            }
        }
        Err(error) => {
            let Trouble { what, hint, is_stranger, .. } =
                Trouble::of("the account's e-mail address", &error, None);
            if is_stranger {
                return Err(Trouble { is_stranger, ..Trouble::new(what, hint) });
            }
            // Certificates matter more.
            tracing::warn!(hint, "{what}");
        }
    }
    Ok(account)
}

async fn make(plan: &Plan, store: &Store, asker: &Asker) -> Result<Account, Trouble> {
    if !plan.agrees {
        return Err(Trouble::new(
            "the authority's terms are not agreed to",
            "read them, and set `acme.agree`",
        ));
    }
    // An account that cannot be kept would be made again and again.
    store.try_out().map_err(|error| unkept("cannot keep an account", store, &error))?;
    let external = plan.external.as_ref().map(|external| {
        let text = external.key.trim_end_matches('=');
        let key =
            BASE64_URL_SAFE_NO_PAD.decode(text).or_else(|_| BASE64_STANDARD_NO_PAD.decode(text));
        key.map(|key| ExternalAccountKey::new(external.id.clone(), &key)).map_err(|error| {
            Trouble::new(
                format!("`acme.eab_key` is no base64url: {error}"),
                "take it over as the authority shows it",
            )
        })
    });
    let external = external.transpose()?;
    let contact = contact(plan);
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let account = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let made = Account::builder_with_http(Box::new(asker.clone())).create(
        &account,
        plan.directory.clone(),
        external.as_ref(),
    );
    let made = made.await.map_err(|e| Trouble::of("a new account", &e, None));
    let (account, credentials) = made?;
    keep(store, &Kept { credentials, email: plan.email.clone() })?;
    tracing::info!(account = account.id(), "an account was made at the authority");
    Ok(account)
}

fn contact(plan: &Plan) -> Option<String> {
    plan.email.as_ref().map(|email| format!("mailto:{email}"))
}

fn keep(store: &Store, kept: &Kept) -> Result<(), Trouble> {
    let bytes = serde_json::to_vec(kept).unwrap_or_default();
    store.keep_account(&bytes).map_err(|error| unkept("cannot keep the account", store, &error))
}

/// A folder that does not do.
pub(crate) fn unkept(what: &str, store: &Store, error: &io::Error) -> Trouble {
    Trouble::new(
        format!("{what} in `{}`: {error}", store.folder().display()),
        "the server's user must be able to write into `acme.folder`, and its disk must have room",
    )
}
