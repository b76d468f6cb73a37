//! The account at the certificate authority: created once, then stored and reused.

use crate::failure::AcmeFailure;
use crate::http::Asker;
use crate::plan::Plan;
use crate::store::Store;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use samovar_outbound::NoRoots;
use serde::{Deserialize, Serialize};
use std::io;

/// Stored form of an account.
#[derive(Deserialize, Serialize)]
struct StoredAccount {
    credentials: AccountCredentials,
    /// Contact address that the authority has on record.
    email: Option<String>,
}

/// An account, and the HTTP client for its authority.
pub(crate) struct Known {
    pub(crate) account: Account,
    pub(crate) asker: Asker,
}

/// Opens the stored account, or creates a new one.
pub(crate) async fn open(plan: &Plan, store: &Store) -> Result<Known, AcmeFailure> {
    let asker = Asker::new(plan.roots.as_deref()).map_err(|NoRoots(path)| {
        let message = format!("no certificates to trust in `{}`", path.display());
        AcmeFailure::new(
            message,
            "install ca-certificates, or set `acme.ca` for a private authority",
        )
    })?;
    let kept = store.account().map_err(|error| unkept("cannot read the account", store, &error))?;
    let account = match kept.as_deref().map(serde_json::from_slice::<StoredAccount>) {
        Some(Ok(kept)) => reopen(plan, store, &asker, kept).await,
        Some(Err(error)) => {
            let put_aside = store.put_account_aside();
            tracing::warn!(
                %error,
                ?put_aside,
                folder = %store.folder().display(),
                "stored ACME account cannot be read; a new one is created"
            );
            make(plan, store, &asker).await
        }
        None => make(plan, store, &asker).await,
    };
    let account = account.map_err(|trouble| trouble.after(asker.told()))?;
    Ok(Known { account, asker })
}

async fn reopen(
    plan: &Plan,
    store: &Store,
    asker: &Asker,
    kept: StoredAccount,
) -> Result<Account, AcmeFailure> {
    let StoredAccount { credentials, email } = kept;
    // `from_credentials` consumes the credentials; this copy is stored again if the address
    // changes.
    let copy = serde_json::to_vec(&credentials).unwrap_or_default();
    let builder = Account::builder_with_http(Box::new(asker.clone()));
    let account = builder.from_credentials(credentials).await;
    let account = account.map_err(|e| AcmeFailure::of("the authority's directory", &e, None))?;
    if email == plan.email {
        return Ok(account);
    }
    let contact = contact(plan);
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    match account.update_contacts(&contact).await {
        Ok(()) => {
            if let Ok(credentials) = serde_json::from_slice(&copy) {
                keep(store, &StoredAccount { credentials, email: plan.email.clone() })?;
            }
        }
        Err(error) => {
            let AcmeFailure { message, hint, is_stranger, .. } =
                AcmeFailure::of("the account's e-mail address", &error, None);
            if is_stranger {
                return Err(AcmeFailure { is_stranger, ..AcmeFailure::new(message, hint) });
            }
            // A failed address update must not prevent certificates.
            tracing::warn!(hint, "{message}");
        }
    }
    Ok(account)
}

async fn make(plan: &Plan, store: &Store, asker: &Asker) -> Result<Account, AcmeFailure> {
    if !plan.agrees {
        return Err(AcmeFailure::new(
            "the authority's terms are not agreed to",
            "read them, and set `acme.agree` to true",
        ));
    }
    // Check storage first: an account that cannot be stored would be created again at every start.
    store.try_out().map_err(|error| unkept("cannot store an account", store, &error))?;
    let external = plan.external.as_ref().map(|external| {
        let text = external.key.trim_end_matches('=');
        let key =
            BASE64_URL_SAFE_NO_PAD.decode(text).or_else(|_| BASE64_STANDARD_NO_PAD.decode(text));
        key.map(|key| ExternalAccountKey::new(external.id.clone(), &key)).map_err(|error| {
            AcmeFailure::new(
                format!("`acme.eab_key` is not base64url: {error}"),
                "copy it as the authority shows it",
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
    let made = made.await.map_err(|e| AcmeFailure::of("a new account", &e, None));
    let (account, credentials) = made?;
    keep(store, &StoredAccount { credentials, email: plan.email.clone() })?;
    tracing::info!(account = account.id(), "ACME account created");
    Ok(account)
}

fn contact(plan: &Plan) -> Option<String> {
    plan.email.as_ref().map(|email| format!("mailto:{email}"))
}

fn keep(store: &Store, kept: &StoredAccount) -> Result<(), AcmeFailure> {
    let bytes = serde_json::to_vec(kept).unwrap_or_default();
    store.keep_account(&bytes).map_err(|error| unkept("cannot store the account", store, &error))
}

/// Makes the error for a folder that cannot be used.
pub(crate) fn unkept(step: &str, store: &Store, error: &io::Error) -> AcmeFailure {
    AcmeFailure::new(
        format!("{step} in `{}`: {error}", store.folder().display()),
        "give the server's user write access to `acme.folder`, and check the free disk space",
    )
}
