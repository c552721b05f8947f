//! A look at the Kubernetes cluster that a new kubeconfig leads to.

use axum::http::StatusCode;
use secrecy::SecretString;

use super::{Answered, Call, written};
use crate::api::answer::FleetCheck;
use crate::component::Extras;
use crate::http::problem::{FieldError, ProblemDocument};
use crate::names::{FleetKey, Identifier};
use crate::plan::UNREACHED;
use crate::plan::preflight::report;
use crate::round::LookError;
use crate::spec::{Components, Exposure, Prometheus};

const KUBECONFIG: &str = "/advanced_config/kubeconfig";

/// The name of a fleet that has none yet.
const UNNAMED: &str = "unnamed";

/// Looks at the cluster, once, with the kubeconfig of the body, which is kept nowhere.
pub(super) fn check(call: &Call) -> Answered {
    let body = call.json()?;
    let text = |pointer: &str| body.0.pointer(pointer)?.as_str().filter(|text| !text.is_empty());
    let missing = |pointer: &str, hint: &str| {
        let why = format!("`{}` is missing", pointer.trim_start_matches('/').replace('/', "."));
        ProblemDocument::mistakes(vec![FieldError::at(pointer, why, hint)])
    };
    let named = text("/organization").ok_or_else(|| missing("/organization", "send it as a string"))?;
    let organization = call.organization(named)?;
    call.may(&organization, call.route.needs)?;
    let kubeconfig = text(KUBECONFIG).ok_or_else(|| missing(KUBECONFIG, "send the content of the file"))?;
    let fleet = text("/identifier").unwrap_or(UNNAMED).parse::<Identifier>().map_err(|_| {
        let why = format!("`identifier` is not {}", Identifier::EXPECTED);
        ProblemDocument::mistakes(vec![FieldError::at(
            "/identifier",
            why,
            "choose another name, or leave it out",
        )])
    })?;
    let fleet = FleetKey { organization, fleet };
    let strimzi = text("/advanced_config/components/strimzi").map(str::to_owned);
    let gateway = serde_json::json!(Exposure::TlsRoute);
    let prometheus = |kind: Prometheus| {
        body.0.pointer("/advanced_config/monitoring/prometheus") == Some(&serde_json::json!(kind))
    };
    let extras = Extras {
        operator: Components { strimzi }.installs().is_some(),
        gateway: body.0.pointer("/advanced_config/exposure") == Some(&gateway),
        monitoring: prometheus(Prometheus::Existing),
        prometheus: prometheus(Prometheus::Own),
        ..Extras::default()
    };
    let (installation, checked) = (&call.made.installation, &call.made.round.checked);
    let kubeconfig = SecretString::from(kubeconfig.to_owned());
    let found = call.runtime.block_on(installation.look(checked, &fleet, &kubeconfig, extras));
    let answer = match found {
        Ok(facts) => FleetCheck { reached: true, reason: None, hint: None, facts: report(&facts, extras) },
        Err(error) => refused(error, call.caller.is_super()),
    };
    Ok(written(StatusCode::OK, &answer))
}

/// Why a cluster wasn't looked at. Only super users learn what happened on the way to an address: others could find
/// out what there is in a network that this host reaches.
fn refused(error: LookError, is_super: bool) -> FleetCheck {
    let (reason, hint) = match error {
        LookError::Target(error) if is_super || !error.is_unreached() => {
            (error.to_string(), error.hint().to_owned())
        }
        LookError::Late if is_super => ("no answer within 10 s".to_owned(), CHECK.to_owned()),
        LookError::Target(_) | LookError::Late => (UNREACHED.to_owned(), CHECK.to_owned()),
    };
    FleetCheck { reached: false, reason: Some(reason), hint: Some(hint), facts: Vec::new() }
}

const CHECK: &str = "check the `kubeconfig`, the API server and the network to it, and try again";
