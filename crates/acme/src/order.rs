//! One certificate: order, proof, and what comes of it.

use crate::account::Known;
use crate::plan::Way;
use crate::stage::{Proof, Stage};
use crate::trouble::Trouble;
use instant_acme::{
    AuthorizationStatus, ChallengeType, Error, Identifier, KeyAuthorization, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use std::time::Duration;

/// How long an authority may take to look for a proof, and then to issue: it is asked in between.
const DECISION: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(500))
    .backoff(1.5)
    .timeout(Duration::from_secs(90));

/// Fetches a certificate: PEM, the chain and then its key.
pub(crate) async fn obtain(
    known: &Known,
    domain: &str,
    way: Way,
    stage: &dyn Stage,
) -> Result<Vec<u8>, Trouble> {
    let fetched = fetch(known, domain, way, stage).await;
    fetched.map_err(|trouble| trouble.after(known.asker.told()))
}

async fn fetch(
    known: &Known,
    domain: &str,
    way: Way,
    stage: &dyn Stage,
) -> Result<Vec<u8>, Trouble> {
    let identifiers = [Identifier::Dns(domain.to_owned())];
    let order = known.account.new_order(&NewOrder::new(&identifiers)).await;
    let mut order = order.map_err(|e| Trouble::of("the order", &e, Some(way)))?;
    // Shown until the authority has decided, however this ends.
    let mut shown = Shown { stage, proofs: Vec::new() };
    prove(&mut order, domain, way, &mut shown).await?;
    let status = order.poll_ready(&DECISION).await;
    let status = match status {
        Ok(OrderStatus::Invalid) => return Err(why_not(&mut order, way).await),
        Err(Error::Api(problem)) => {
            // The order's own word is short; what the authority saw is in the authorization.
            let plain = Trouble::of("the proof", &Error::Api(problem), Some(way));
            return Err(seen(&mut order, way).await.unwrap_or(plain));
        }
        other => other.map_err(|e| Trouble::of("the proof", &e, Some(way)))?,
    };
    if status != OrderStatus::Ready {
        return Err(Trouble::new(
            format!("the order is {status:?} after the proof"),
            "it is tried again",
        ));
    }
    drop(shown);
    issue(&mut order, domain).await
}

/// What is shown, until it is dropped.
struct Shown<'a> {
    stage: &'a dyn Stage,
    proofs: Vec<Proof>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.proofs.iter().for_each(|proof| self.stage.hide(proof));
    }
}

/// Shows what the authority wants to see, and says so.
async fn prove(
    order: &mut Order,
    domain: &str,
    way: Way,
    shown: &mut Shown<'_>,
) -> Result<(), Trouble> {
    let wrong = |error: &Error| Trouble::of("the authorization", error, Some(way));
    let mut authorizations = order.authorizations();
    while let Some(found) = authorizations.next().await {
        let mut found = found.map_err(|e| wrong(&e))?;
        match found.status {
            AuthorizationStatus::Pending => {}
            // Shown lately, and believed yet.
            AuthorizationStatus::Valid => continue,
            other => {
                let what = format!("the authorization is {other:?} before anything was shown");
                return Err(Trouble::new(what, "it is tried again"));
            }
        }
        let kind = match way {
            Way::Http01 => ChallengeType::Http01,
            Way::TlsAlpn01 => ChallengeType::TlsAlpn01,
        };
        let mut challenge = found.challenge(kind).ok_or_else(|| {
            Trouble::new(
                format!("the authority does not look at {}", way.name()),
                "leave `acme.challenge` out, and have `listen` answer on port 80 as well as 443",
            )
        })?;
        let proof = proof(domain, way, &challenge.token, &challenge.key_authorization())?;
        shown.stage.show(&proof).map_err(|error| {
            Trouble::new(format!("cannot show a proof: {error}"), "it is tried again")
        })?;
        shown.proofs.push(proof);
        challenge.set_ready().await.map_err(|e| Trouble::of("the proof", &e, Some(way)))?;
    }
    Ok(())
}

fn proof(domain: &str, way: Way, token: &str, answer: &KeyAuthorization) -> Result<Proof, Trouble> {
    let failed = |error: rcgen::Error| {
        Trouble::new(format!("cannot make a certificate as a proof: {error}"), "it is tried again")
    };
    match way {
        Way::Http01 => {
            Ok(Proof::Token { token: token.to_owned(), answer: answer.as_str().to_owned() })
        }
        Way::TlsAlpn01 => {
            let mut params = CertificateParams::new(vec![domain.to_owned()]).map_err(failed)?;
            let digest = answer.digest();
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

/// What the authority says of a proof that it has looked for.
async fn seen(order: &mut Order, way: Way) -> Option<Trouble> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut found)) = authorizations.next().await {
        let state = found.refresh().await.ok()?;
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.clone());
        if let Some(problem) = problem {
            return Some(Trouble::of("the proof", &Error::Api(problem), Some(way)));
        }
    }
    None
}

async fn why_not(order: &mut Order, way: Way) -> Trouble {
    seen(order, way).await.unwrap_or_else(|| {
        Trouble::new(
            "the authority has refused the order and does not say why",
            "it is tried again",
        )
    })
}

async fn issue(order: &mut Order, domain: &str) -> Result<Vec<u8>, Trouble> {
    let failed = |error: rcgen::Error| {
        Trouble::new(format!("cannot make a key and its request: {error}"), "it is tried again")
    };
    let mut params = CertificateParams::new(vec![domain.to_owned()]).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().map_err(failed)?;
    let request = params.serialize_request(&key).map_err(failed)?;
    let wrong = |error: &Error| Trouble::of("the certificate", error, None);
    order.finalize_csr(request.der()).await.map_err(|e| wrong(&e))?;
    let chain = order.poll_certificate(&DECISION).await.map_err(|e| wrong(&e))?;
    Ok([chain.trim_end(), "\n", &key.serialize_pem()].concat().into_bytes())
}
