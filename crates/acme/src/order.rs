//! One order: proof of control over the name, then the certificate.

use crate::account::Known;
use crate::failure::AcmeFailure;
use crate::plan::Way;
use crate::stage::{Proof, Stage};
use instant_acme::{
    AuthorizationStatus, ChallengeType, Error, Identifier, KeyAuthorization, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use std::time::Duration;

/// Time limit for the authority to check a proof, and then to issue. The order is polled meanwhile.
const DECISION: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(90));

/// Orders a certificate. Returns PEM: the chain, then its key.
pub(crate) async fn obtain(
    known: &Known,
    domain: &str,
    way: Way,
    stage: &dyn Stage,
) -> Result<Vec<u8>, AcmeFailure> {
    let fetched = fetch(known, domain, way, stage).await;
    fetched.map_err(|trouble| trouble.after(known.asker.told()))
}

async fn fetch(
    known: &Known,
    domain: &str,
    way: Way,
    stage: &dyn Stage,
) -> Result<Vec<u8>, AcmeFailure> {
    let identifiers = [Identifier::Dns(domain.to_owned())];
    let order = known.account.new_order(&NewOrder::new(&identifiers)).await;
    let mut order = order.map_err(|e| AcmeFailure::of("the order", &e, Some(way)))?;
    // The proofs stay visible until the authority has decided, also if an error returns early.
    let mut shown = Shown { stage, proofs: Vec::new() };
    prove(&mut order, domain, way, &mut shown).await?;
    let status = order.poll_ready(&DECISION).await;
    let status = match status {
        Ok(OrderStatus::Invalid) => return Err(why_not(&mut order, way).await),
        Err(Error::Api(problem)) => {
            // The order's error is short; the authorization has the details.
            let plain = AcmeFailure::of("the challenge", &Error::Api(problem), Some(way));
            return Err(seen(&mut order, way).await.unwrap_or(plain));
        }
        other => other.map_err(|e| AcmeFailure::of("the challenge", &e, Some(way)))?,
    };
    if status != OrderStatus::Ready {
        return Err(AcmeFailure::new(
            format!("the order is {status:?} after the challenge"),
            "wait for the next attempt",
        ));
    }
    drop(shown);
    issue(&mut order, domain).await
}

/// Proofs that are shown until this is dropped.
struct Shown<'a> {
    stage: &'a dyn Stage,
    proofs: Vec<Proof>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.proofs.iter().for_each(|proof| self.stage.hide(proof));
    }
}

/// Shows the proofs that the authority requires, and notifies the authority.
async fn prove(
    order: &mut Order,
    domain: &str,
    way: Way,
    shown: &mut Shown<'_>,
) -> Result<(), AcmeFailure> {
    let wrong = |error: &Error| AcmeFailure::of("the authorization", error, Some(way));
    let mut authorizations = order.authorizations();
    while let Some(found) = authorizations.next().await {
        let mut found = found.map_err(|e| wrong(&e))?;
        match found.status {
            AuthorizationStatus::Pending => {}
            // A recent proof is still valid.
            AuthorizationStatus::Valid => continue,
            other => {
                let message = format!("the authorization is {other:?} before the challenge");
                return Err(AcmeFailure::new(message, "wait for the next attempt"));
            }
        }
        let kind = match way {
            Way::Http01 => ChallengeType::Http01,
            Way::TlsAlpn01 => ChallengeType::TlsAlpn01,
        };
        let mut challenge = found.challenge(kind).ok_or_else(|| {
            AcmeFailure::new(
                format!("the authority does not offer the challenge {}", way.name()),
                "remove `acme.challenge`, and listen on port 80 and on port 443",
            )
        })?;
        let proof = proof(domain, way, &challenge.token, &challenge.key_authorization())?;
        shown.stage.show(&proof).map_err(|error| {
            AcmeFailure::new(
                format!("cannot publish the challenge response: {error}"),
                "wait for the next attempt",
            )
        })?;
        shown.proofs.push(proof);
        challenge.set_ready().await.map_err(|e| AcmeFailure::of("the challenge", &e, Some(way)))?;
    }
    Ok(())
}

fn proof(
    domain: &str,
    way: Way,
    token: &str,
    response: &KeyAuthorization,
) -> Result<Proof, AcmeFailure> {
    let failed = |error: rcgen::Error| {
        AcmeFailure::new(
            format!("cannot create the challenge certificate: {error}"),
            "wait for the next attempt",
        )
    };
    match way {
        Way::Http01 => {
            Ok(Proof::Token { token: token.to_owned(), response: response.as_str().to_owned() })
        }
        Way::TlsAlpn01 => {
            let mut params = CertificateParams::new(vec![domain.to_owned()]).map_err(failed)?;
            let digest = response.digest();
            params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
            let key = KeyPair::generate().map_err(failed)?;
            let certificate = params.self_signed(&key).map_err(failed)?;
            Ok(Proof::Handshake {
                domain: domain.to_owned(),
                certificate: certificate.der().to_vec(),
                key: key.serialize_der(),
            })
        }
    }
}

/// Returns the error that the authority reports for a proof, if there is one.
async fn seen(order: &mut Order, way: Way) -> Option<AcmeFailure> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut found)) = authorizations.next().await {
        let state = found.refresh().await.ok()?;
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.clone());
        if let Some(problem) = problem {
            return Some(AcmeFailure::of("the challenge", &Error::Api(problem), Some(way)));
        }
    }
    None
}

async fn why_not(order: &mut Order, way: Way) -> AcmeFailure {
    seen(order, way).await.unwrap_or_else(|| {
        AcmeFailure::new(
            "the authority rejected the order without a reason",
            "wait for the next attempt",
        )
    })
}

async fn issue(order: &mut Order, domain: &str) -> Result<Vec<u8>, AcmeFailure> {
    let failed = |error: rcgen::Error| {
        AcmeFailure::new(
            format!("cannot create a key and its certificate request: {error}"),
            "wait for the next attempt",
        )
    };
    let mut params = CertificateParams::new(vec![domain.to_owned()]).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().map_err(failed)?;
    let request = params.serialize_request(&key).map_err(failed)?;
    let wrong = |error: &Error| AcmeFailure::of("the certificate", error, None);
    order.finalize_csr(request.der()).await.map_err(|e| wrong(&e))?;
    let chain = order.poll_certificate(&DECISION).await.map_err(|e| wrong(&e))?;
    Ok([chain.trim_end(), "\n", &key.serialize_pem()].concat().into_bytes())
}
