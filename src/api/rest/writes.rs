//! Calls that change a resource. Each becomes an edit of the specs, which the next round carries out.

use axum::http::StatusCode;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

use super::json::Wiped;
use super::resources::{TaggedRecord, record};
use super::{Answered, Call, DryRun, written};
use crate::api::answer::ProposedEdit;
use crate::api::route::list_path;
use crate::catalog::{OpenedSecret, Status};
use crate::http::problem::{ProblemDocument, code};
use crate::http::query::encoded;
use crate::http::tags::Tags;
use crate::names::{Identifier, Kind, ResourceKey, SecretRef};
use crate::problem::{Problem, quote_untrusted};
use crate::record::{Standing, UnplannedWrite};
use crate::round::Installation;
use crate::spec::kubeconfig::{KubeAccess, KubeAuth};
use crate::spec::{Commit, Documents, SECRET_FIELDS};
use crate::state::RecordedEvent;
use crate::views::records;
use crate::writing::{self, CurrentPlan, WriteAction, WriteRefusal, WriteRequest, WriteResult};

/// How long a write waits for a resource it refers to that is still being created.
const MAKING: Duration = Duration::from_secs(5);

/// How long a deletion waits for the plan that says what blocks it. Planning takes a moment, unless a target
/// delays it.
const PLANNING: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(100);

/// Creates a resource. Only this answer contains the secrets that were sent.
pub(super) fn create(call: &Call) -> Answered {
    let (kind, body) = (call.kind(), call.named()?);
    let organization = match (kind, body.0["organization"].as_str()) {
        (Kind::Cluster, Some(named)) if !named.is_empty() => Some(call.organization(named)?),
        // Fails, with an error about the missing field.
        (Kind::Cluster, _) => Some(writing::key_of(kind, None, &body.0)?.organization),
        _ => call.within(kind)?,
    };
    match &organization {
        Some(organization) => call.may(organization, call.route.needs)?,
        None => call.may_as_super()?,
    }
    let may_limit = call.caller.is_super();
    // `If-Match: *` always matches, since the list exists; other tags never match a list.
    let if_match = call.expected()?.filter(|tags| *tags != Tags::Any);
    let request = |body: &Value| {
        let key = writing::key_of(kind, organization.as_ref(), body)?;
        let (what, if_match) = (WriteAction::Create(body.clone()), if_match.clone());
        Ok::<_, WriteRefusal>(WriteRequest { key, what, if_match, may_limit, record: None })
    };
    let refuse =
        |refused: ProblemDocument| call.with_all_mistakes(&body.0, refused, |body| request(body).ok());
    let order = request(&body.0).map_err(|refused| refuse(refused.into()))?;
    if kind == Kind::Organization && order.key.name == Identifier::ROOT {
        let why = "organization `root` always exists, and has no members";
        return Err(ProblemDocument::new(&code::DUPLICATE, why));
    }
    if let Some(wanted) = call.dry_run()? {
        return call.proposed(&order, wanted).map_err(refuse);
    }
    let written = call.write(&order).map_err(refuse)?;
    let mut shown = call.as_written(&written);
    let place = call.base.path.clone() + &place(&written);
    echo(kind, &mut shown, &body.0);
    Ok(record(StatusCode::CREATED, &shown, written.etag.as_ref(), Some(&place)))
}

pub(super) fn replace(call: &Call) -> Answered {
    let body = call.named()?;
    call.change(WriteAction::Replace(body.into_value()))
}

pub(super) fn patch(call: &Call) -> Answered {
    let body = call.named()?;
    call.change(WriteAction::Patch(body.into_value()))
}

/// Deletes a resource. It stays visible, as being deleted, until all of it is gone.
pub(super) fn delete(call: &Call) -> Answered {
    let (found, request) = call.request(WriteAction::Delete)?;
    let dry_run = call.dry_run()?;
    if call.has_no_spec(&found.key) {
        return match dry_run {
            // The deletion is already part of the plan.
            Some(DryRun::Plan) => {
                let made = call.runtime.block_on(call.service.request_queue.current())?;
                Ok(written(StatusCode::OK, &call.visible(&made.round)))
            }
            Some(DryRun::File) => {
                let why = format!("no file describes {} any more", found.key);
                Err(ProblemDocument::new(&code::GOING, why))
            }
            None => Ok(record(StatusCode::ACCEPTED, &found.record, None, None)),
        };
    }
    if let Some(wanted) = dry_run {
        return call.proposed(&request, wanted);
    }
    call.write(&request)?;
    let mut shown = found.record;
    if shown.get("status").is_some() {
        let Standing { status, reason, conditions, .. } = call.deleted(&found.key);
        shown["status"] = json!(status);
        shown["status_reason"] = json!(reason);
        shown["conditions"] = json!(conditions);
    }
    Ok(record(StatusCode::ACCEPTED, &shown, None, None))
}

impl Call {
    /// The standing of a resource whose document was just removed: by the plan that says what its deletion
    /// waits for, unless that takes too long.
    fn deleted(&self, key: &ResourceKey) -> Standing {
        let planned = async { timeout(PLANNING, self.service.request_queue.current()).await };
        let planned = self.runtime.block_on(planned).ok().and_then(Result::ok);
        let standing = planned.map(|made| made.round.standing_for(key, None, self.audience()));
        standing.filter(|standing| standing.status == Status::Deleting).unwrap_or_else(|| {
            self.made.round.standing_for(key, Some(UnplannedWrite::Removed), self.audience())
        })
    }

    /// The body, with an organization's id replaced by its identifier.
    fn named(&self) -> Result<Wiped, ProblemDocument> {
        let mut body = self.json()?;
        let given = body.0.get_mut("organization").filter(|_| self.kind() != Kind::Organization);
        if let Some(given) = given
            && let Some(id) = given.as_str().and_then(|text| text.parse().ok())
            && let Some(organization) = self.organization_with(id)
        {
            *given = organization.as_str().into();
        }
        Ok(body)
    }

    fn change(&self, what: WriteAction) -> Answered {
        let (_, request) = self.request(what)?;
        let refuse = |refused: ProblemDocument| match &request.what {
            WriteAction::Patch(body) => self.with_all_mistakes(body, refused, |body| {
                let (key, record) = (request.key.clone(), request.record.clone());
                let (what, may_limit) = (WriteAction::Patch(body.clone()), request.may_limit);
                Some(WriteRequest { key, what, if_match: None, may_limit, record })
            }),
            _ => refused,
        };
        if let Some(wanted) = self.dry_run()? {
            return self.proposed(&request, wanted).map_err(refuse);
        }
        let written = self.write(&request).map_err(refuse)?;
        Ok(record(StatusCode::OK, &self.as_written(&written), written.etag.as_ref(), None))
    }

    /// The write request for the resource that the path names, if the caller has the permission.
    fn request(&self, what: WriteAction) -> Result<(TaggedRecord, WriteRequest), ProblemDocument> {
        let found = self.found()?;
        self.may(&found.key.organization, self.route.needs)?;
        if self.has_no_spec(&found.key) {
            let standing = self.standing(&found.key);
            if standing.status != Status::Deleting {
                let reason = standing.reason.unwrap_or_default();
                let why = format!("{} can't be changed: {reason}", found.key);
                return Err(ProblemDocument::new(&code::NOT_EDITABLE, why)
                    .hint("create it again, or have its spec file restored"));
            }
            if !matches!(what, WriteAction::Delete) {
                return Err(ProblemDocument::new(&code::GOING, format!("{} is being deleted", found.key)));
            }
        }
        // `root` needs no document.
        let known = &self.made.round.checked.catalog.resources;
        let is_described = known.contains_key(&found.key) || self.pending.contains_key(&found.key);
        if records::is_root(&found.key) && !is_described {
            let why = "organization `root` always exists, and no file describes it";
            let hint = "describe it in an administrator's file to give it quotas or domains";
            return Err(ProblemDocument::new(&code::NOT_EDITABLE, why).hint(hint));
        }
        let (key, record) = (found.key.clone(), Some(found.record.clone()));
        let may_limit = self.caller.is_super();
        let request = WriteRequest { key, what, if_match: self.expected()?, may_limit, record };
        Ok((found, request))
    }

    fn write(&self, request: &WriteRequest) -> Result<Arc<WriteResult>, ProblemDocument> {
        let (author, begun, mut made) = (self.caller.author(), Instant::now(), self.made.clone());
        let written = loop {
            match self.service.writer.write(&made, request, &author) {
                // Whether there is capacity is known once the other resource is created.
                Err(WriteRefusal::Dependency { on, .. })
                    if is_being_made(&made, &on) && begun.elapsed() < MAKING =>
                {
                    std::thread::sleep(PAUSE);
                    made = self.runtime.block_on(self.service.request_queue.last())?;
                }
                written => break written?,
            }
        };
        if written.is_new {
            self.audit(&written);
        }
        Ok(written)
    }

    /// Records the write in the audit trail. A failure to record it doesn't undo it.
    fn audit(&self, written: &WriteResult) {
        let WriteResult { at, message, commit, path, .. } = written;
        let (who, author) = (self.caller.actor(), self.caller.author());
        let author = format!("{} <{}>", author.name, author.email);
        let commit = commit.clone().map(|id| Commit { id, author, is_edited: false, rewrote: None });
        let what = format!("{message} ({path})");
        let (resource, by_super_user) = (Some(written.key.clone()), self.caller.is_super());
        let event =
            RecordedEvent { commit, resource, by_super_user, ..RecordedEvent::done(*at, &who, &what) };
        if let Err(error) = self.service.state.audit_person(event) {
            tracing::error!(%error, hint = error.hint(), by = who, "cannot record in the audit trail: {what}");
        }
    }

    fn proposed(&self, request: &WriteRequest, wanted: DryRun) -> Answered {
        let (documents, edit) = self.service.writer.propose(&self.made, request)?;
        if wanted == DryRun::File {
            let text_in = |documents: &Documents| {
                documents.files.get(&edit.path)?.text_of(&edit.key).map(|found| found.text)
            };
            let (before, after) = (text_in(&self.made.documents), text_in(&documents));
            let told = |warning: &Problem| match &warning.hint {
                Some(hint) => format!("{}: {hint}", warning.message),
                None => warning.message.clone(),
            };
            let warnings = edit.warnings.iter().map(told).collect();
            let secrets = self.secret_changes(request);
            let WriteResult { path, message, .. } = edit;
            let edit = ProposedEdit { path, message, before, after, secrets, warnings };
            return Ok(written(StatusCode::OK, &edit));
        }
        let installation = Installation { proposed: true, ..Installation::clone(&self.made.installation) };
        self.planned(&documents, installation, Timestamp::now())
    }
}

impl Call {
    /// The effects of a write on secrets. Of a kubeconfig, the caller learns no more than what was sent.
    fn secret_changes(&self, WriteRequest { key, what, .. }: &WriteRequest) -> Vec<String> {
        let body = match what {
            WriteAction::Create(body) | WriteAction::Replace(body) | WriteAction::Patch(body) => body,
            WriteAction::Delete => return Vec::new(),
        };
        let of_kind = SECRET_FIELDS.into_iter().filter(|(kind, ..)| *kind == key.kind);
        let change = |(_, field, pointer): (Kind, &str, &str)| {
            let new = body.pointer(pointer)?.as_str()?.trim();
            let reference = SecretRef { resource: key.clone(), field: field.to_owned() };
            let before = self.made.round.checked.secrets.opened.get(&reference);
            let known = match before {
                Some(OpenedSecret::Value { value, .. }) => Some(value.expose_secret().trim()),
                _ => None,
            };
            let change = match before {
                Some(_) if known == Some(new) => "is the one that is there already",
                Some(_) => "is replaced",
                None => "is new",
            };
            let access = (field == "kubeconfig").then(|| KubeAccess::parse(new).ok()).flatten();
            let detail =
                access.map(|access| where_to(&access, known.and_then(|it| KubeAccess::parse(it).ok())));
            Some(format!("`{field}` {change}{}", detail.unwrap_or_default()))
        };
        of_kind.filter_map(change).collect()
    }
}

/// The server of a kubeconfig, as the end of a sentence.
fn where_to(access: &KubeAccess, before: Option<KubeAccess>) -> String {
    let which = match before {
        Some(before) if before.server == access.server => "the same server as before",
        Some(_) => "another server than before",
        None => "the server",
    };
    let login = match access.auth {
        KubeAuth::ClientCertificate { .. } => "a client certificate",
        KubeAuth::Token(_) | KubeAuth::TokenFile(_) => "a token",
    };
    format!(": it leads to {which}, `{}`, and signs in with {login}", quote_untrusted(&access.server))
}

fn is_being_made(made: &CurrentPlan, key: &ResourceKey) -> bool {
    made.round.checked.recorded.resources.get(key).is_some_and(|record| record.durable.creating)
}

/// The `Location` of a new resource.
fn place(WriteResult { key, id, .. }: &WriteResult) -> String {
    let ResourceKey { organization, kind, name } = key;
    let list = list_path(*kind).replace("{organization}", organization.as_str());
    if *kind == Kind::Cluster { format!("{list}/{id}") } else { format!("{list}/{}", encoded(name)) }
}

/// Puts the secrets that the caller sent into the answer, as the interface specification demands for a new
/// resource.
fn echo(kind: Kind, record: &mut Value, body: &Value) {
    for (_, _, pointer) in SECRET_FIELDS.into_iter().filter(|(of, ..)| *of == kind) {
        if let (Some(shown), Some(sent)) = (record.pointer_mut(pointer), body.pointer(pointer)) {
            *shown = sent.clone();
        }
    }
}
