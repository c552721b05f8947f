//! The form of a new resource: for fleets and clusters in four steps, each a page of its own.
//!
//! The values of the other steps are in the query, so that a step can be returned to. A step's form is posted, and leads to the
//! address of the next one: what looks like a secret is left out there, since addresses are kept in histories and logs. The last step
//! asks for secrets; its input is a draft.

use askama::Template;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::MethodFilter;
use serde_json::{Value, json};
use uuid::Uuid;

use super::resource_list::organizations;
use super::review::ApiCall;
use super::{KindPages, require, with_query};
use crate::api::answer::{ClusterFitList, FleetFit, ListAnswer, Offer, Offers, Room};
use crate::api::route::{self, LARGEST_PAGE};
use crate::http::problem::FieldError;
use crate::http::problem::code::CAPACITY;
use crate::names::Kind;
use crate::spec::describe::InputKind;
use crate::ui::client::Refusal;
use crate::ui::form::{self, FormField, FormOption, FormStep, Typed, attach, steps};
use crate::ui::view::{Frame, field, filters, shown};
use crate::ui::{Page, Shown, Visit, value_of};

#[derive(Template)]
#[template(path = "form.html")]
pub struct FormPage {
    pub frame: Frame,
    pub title: String,
    /// The address that the form is sent to, below `/ui`.
    pub action: String,
    /// Whether it leads to a further step, and not to the review.
    pub is_step: bool,
    /// The number of the step; 0 if all steps are on the page.
    pub step: usize,
    /// The titles of all steps.
    pub steps: Vec<&'static str>,
    pub sections: Vec<FormSection>,
    pub hidden: Vec<(String, String)>,
    pub error: Option<Refusal>,
    /// The fleets to choose from in a later step.
    pub fleets: Vec<FormOption>,
    /// The resources to create first: a sentence, and the page for it.
    pub missing: Vec<(&'static str, &'static str)>,
    /// The address of the step before; empty on the first.
    pub back: String,
    /// The page with the file of the resource, below `/ui`; empty for a new one.
    pub file_page: String,
}

pub struct FormSection {
    pub title: &'static str,
    pub lead: &'static str,
    pub fields: Vec<FormField>,
    /// Fields that are shown when somebody asks for them.
    pub more: Vec<FormField>,
}

impl FormPage {
    /// The form of a new resource.
    pub fn of(visit: &Visit, pages: &KindPages, sections: Vec<FormSection>) -> FormPage {
        FormPage {
            frame: visit.frame(pages.slug),
            title: format!("New {}", pages.kind.noun()),
            action: format!("/new/{}", pages.slug),
            is_step: false,
            step: 0,
            steps: steps(pages.kind).iter().map(|step| step.title).collect(),
            sections,
            hidden: Vec::new(),
            error: None,
            fleets: Vec::new(),
            missing: Vec::new(),
            back: String::new(),
            file_page: String::new(),
        }
    }

    pub fn shown(&self) -> Response {
        shown(self.error.as_ref().map_or(StatusCode::OK, |error| error.status), self)
    }

    /// Whether the value of a choice isn't one that is offered.
    fn is_other(&self, field: &FormField) -> bool {
        !field.value.is_empty() && !field.options.iter().any(|option| option.value == field.value)
    }

    fn is_right(&self) -> bool {
        self.wrong().next().is_none()
    }

    /// The files and lines with mistakes: `acme/clusters/orders.yaml:7`.
    fn places(&self) -> Vec<String> {
        let all = self.error.iter().flat_map(|error| &error.errors);
        let place = |error: &FieldError| {
            let file = error.file.as_ref()?;
            Some(error.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
        };
        let mut places: Vec<String> = all.filter_map(place).collect();
        places.dedup();
        places
    }

    /// The fields with mistakes, for the summary.
    fn wrong(&self) -> impl Iterator<Item = &FormField> {
        let all = self.sections.iter().flat_map(|section| section.fields.iter().chain(&section.more));
        all.filter(|field| !field.errors.is_empty())
    }
}

impl FormSection {
    fn is_more_open(&self) -> bool {
        let is_own = |field: &FormField| field.value != field.shown.as_deref().unwrap_or_default();
        self.more.iter().any(|field| !field.errors.is_empty() || is_own(field))
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let pages = KindPages::of_path(visit)?;
    require(visit, pages.kind, route::Method::Post, None)?;
    let (steps, mut typed) = (steps(pages.kind), visit.typed());
    withhold(pages.kind, &mut typed);
    let wanted = visit.parameter("step").parse().unwrap_or(1).clamp(1, steps.len());
    let mut fields = form::fields(pages.kind, true);
    let before = steps[..wanted - 1].iter().map(|step| step.fields.len()).sum();
    let mut step = wanted;
    // The steps before are complete when the API finds nothing wrong in them.
    if wanted > 1
        && let Err(mut refusal) = proposed(visit, pages, &fields, &typed).await
        // The steps that follow say where there is room.
        && refusal.title != CAPACITY.title
    {
        match attach(&mut fields, &mut refusal, before) {
            true => step = first_wrong(&fields, steps),
            false if refusal.status == StatusCode::UNPROCESSABLE_ENTITY => {}
            false => return whole(visit, pages, &typed, None, Some(refusal)).await,
        }
    }
    // The steps that follow aren't filled in yet.
    fields.iter_mut().skip(before).for_each(|field| field.errors.clear());
    let own = steps[..step].iter().map(|step| step.fields.len()).sum::<usize>();
    let first = own - steps[step - 1].fields.len();
    let is_last = step == steps.len();
    fields.iter_mut().for_each(|field| field.fill(typed.text(&field.pointer)));
    let withheld = visit.parameter("withheld");
    fields.iter_mut().filter(|field| field.pointer == withheld).for_each(|field| field.is_hidden = true);
    let missing = offer(visit, pages.kind, &mut fields, &typed).await?;
    // The only choice is chosen.
    for field in fields.iter_mut().filter(|field| field.is_required && field.value.is_empty()) {
        let mut offered = field.options.iter().filter(|option| option.is_offered());
        if let (Some(only), None) = (offered.next(), offered.next()) {
            field.value.clone_from(&only.value);
        }
    }
    let before_fleet = pages.kind == Kind::Cluster && step == 2;
    let of_fleet = fields.iter().find(|field| before_fleet && field.pointer == "/infrastructure");
    let fleets = of_fleet.map(|field| field.options.clone()).unwrap_or_default();
    let more = if is_last { fields.split_off(own) } else { Vec::new() };
    let hidden = typed.iter().filter(|(name, _)| !steps[step - 1].fields.contains(name));
    let mut hidden: Vec<_> = hidden.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    if !is_last {
        hidden.push(("step".to_owned(), (step + 1).to_string()));
    }
    let own_fields = fields.drain(first..own).collect();
    let FormStep { title, lead, .. } = steps[step - 1];
    let sections = fitting(vec![FormSection { title, lead, fields: own_fields, more }], &typed);
    let page = FormPage {
        is_step: !is_last,
        step: if steps.len() > 1 { step } else { 0 },
        hidden,
        fleets,
        missing,
        back: if step > 1 { address(pages, step - 1, &typed) } else { String::new() },
        ..FormPage::of(visit, pages, sections)
    };
    Ok(page.shown())
}

/// The longest address of a step, in bytes. What doesn't fit is a draft.
const LONGEST_ADDRESS: usize = 4 << 10;

/// Leaves out what has no place in an address: secrets, and what looks like one in another field. Returns the first of those.
fn withhold(kind: Kind, typed: &mut Typed) -> Option<String> {
    form::secrets(kind).for_each(|pointer| typed.remove(pointer));
    let keys = typed.iter().filter(|(_, text)| form::looks_like_key(text));
    let keys: Vec<String> = keys.map(|(name, _)| name.to_owned()).collect();
    keys.iter().for_each(|name| typed.remove(name));
    keys.into_iter().next()
}

/// The address of the step that a form leads to, below `/ui`; `None` if it is no form of a step, or its input doesn't fit.
pub fn next_step(page: &Page, path: &[String], sent: &[(String, String)]) -> Option<String> {
    let step: usize = value_of(sent, "step").parse().ok().filter(|_| is_form(page))?;
    let pages = KindPages::of_slug(path.first()?)?;
    let mut typed = Typed::of(sent);
    let withheld = withhold(pages.kind, &mut typed);
    // The step is shown again, with what became of the field.
    let step = if withheld.is_some() { step.saturating_sub(1).max(1) } else { step };
    let address = address(pages, step, &typed);
    let address = with_query(address, &[("withheld", withheld.as_deref().unwrap_or_default())]);
    (address.len() <= LONGEST_ADDRESS).then_some(address)
}

fn is_form(page: &Page) -> bool {
    page.method == MethodFilter::POST && page.path == super::NEW
}

/// The address of a step, with what was typed.
fn address(pages: &KindPages, step: usize, typed: &Typed) -> String {
    let step = step.to_string();
    let all: Vec<(&str, &str)> = [("step", step.as_str())].into_iter().chain(typed.iter()).collect();
    with_query(format!("/new/{}", pages.slug), &all)
}

fn first_wrong(fields: &[FormField], steps: &[FormStep]) -> usize {
    let wrong = fields.iter().position(|field| !field.errors.is_empty()).unwrap_or_default();
    let mut end = 0;
    let is_reached = |step: &FormStep| {
        end += step.fields.len();
        wrong < end
    };
    steps.iter().position(is_reached).unwrap_or_default() + 1
}

/// Asks the API what a new resource would write.
async fn proposed(
    visit: &Visit,
    pages: &KindPages,
    fields: &[FormField],
    typed: &Typed,
) -> Result<Value, Refusal> {
    let (body, mistakes) = form::new_body(fields, typed);
    let path = format!("{}?dry_run=file", pages.list_path(typed.text("/organization")));
    let proposed = visit.api.send(Method::POST, &path, Some(&body)).await.map_err(of_organization);
    Refusal::with(mistakes, proposed)
}

/// Puts the refusal of an unknown organization, which is a part of the path, at its field.
pub fn of_organization(mut refusal: Refusal) -> Refusal {
    if refusal.status == StatusCode::NOT_FOUND {
        refusal.status = StatusCode::UNPROCESSABLE_ENTITY;
        refusal.errors = vec![FieldError {
            pointer: Some("/organization".to_owned()),
            detail: refusal.detail.clone(),
            hint: refusal.hint.clone(),
            ..FieldError::default()
        }];
    }
    refusal
}

/// The form with all its steps on one page.
pub async fn whole(
    visit: &Visit,
    pages: &'static KindPages,
    typed: &Typed,
    draft: Option<Uuid>,
    mut error: Option<Refusal>,
) -> Result<Response, Refusal> {
    let mut fields = form::fields(pages.kind, true);
    if let Some(error) = &mut error {
        attach(&mut fields, error, 0);
    }
    fields.iter_mut().for_each(|field| field.fill(typed.text(&field.pointer)));
    let missing = offer(visit, pages.kind, &mut fields, typed).await?;
    let hidden = draft.iter().map(|id| ("draft".to_owned(), id.to_string())).collect();
    let sections = fitting(sections(pages.kind, fields), typed);
    Ok(FormPage { hidden, missing, error, ..FormPage::of(visit, pages, sections) }.shown())
}

/// All fields by their steps; the others are below the last one.
pub fn sections(kind: Kind, mut fields: Vec<FormField>) -> Vec<FormSection> {
    let steps = steps(kind);
    let mut sections: Vec<FormSection> = steps
        .iter()
        .map(|step| {
            let own = |field: &mut FormField| step.fields.contains(&field.pointer.as_str());
            let own = fields.extract_if(.., own).collect();
            FormSection { title: step.title, lead: step.lead, fields: own, more: Vec::new() }
        })
        .collect();
    if let Some(last) = sections.last_mut() {
        last.more = fields;
    }
    sections
}

/// A fleet that is a folder has a path, and no kubeconfig.
fn fitting(mut sections: Vec<FormSection>, typed: &Typed) -> Vec<FormSection> {
    const KUBECONFIG: &str = "/advanced_config/kubeconfig";
    if typed.text("/infra_type") != "directory" || !typed.text(KUBECONFIG).is_empty() {
        return sections;
    }
    for FormSection { lead, fields, more, .. } in &mut sections {
        let before = fields.len();
        fields.retain(|field| field.pointer != KUBECONFIG);
        if fields.len() < before {
            fields.extend(more.extract_if(.., |field| field.pointer == "/advanced_config/path"));
            *lead = "The manifests are written to a folder, so there is nothing to sign in to.";
        }
    }
    sections
}

/// Fills in what fields can be here, and returns what has to be created first.
pub async fn offer(
    visit: &Visit,
    kind: Kind,
    fields: &mut [FormField],
    typed: &Typed,
) -> Result<Vec<(&'static str, &'static str)>, Refusal> {
    let (mut missing, mode) = (Vec::new(), typed.text("/tenancy_mode"));
    if kind == Kind::Organization {
        return Ok(missing);
    }
    let known = organizations(visit).await?;
    let organization = match (typed.text("/organization"), known.names.as_slice()) {
        ("", [only]) => only.clone(),
        (named, _) => named.to_owned(),
    };
    if known.names.is_empty() {
        missing.push(("There is no organization yet, which has to own it.", "/new/organizations"));
    }
    let offers: Offers = visit.api.get("/v1/offers").await?;
    let fleet = offers.fleets.iter().find(|offers| {
        offers.fleet.organization.as_str() == organization
            && offers.fleet.fleet.as_str() == typed.text("/infrastructure")
    });
    let offered = |offers: &[Offer]| offers.iter().map(FormOption::from).collect::<Vec<_>>();
    for field in fields.iter_mut() {
        match (kind, field.pointer.as_str(), fleet) {
            (_, "/organization", _) => {
                choices(field, known.total, known.are_more, known.names.iter().map(String::as_str));
            }
            (Kind::Fleet, "/infra_type", _) => field.options = offered(&offers.infra_types),
            (Kind::Cluster, "/cluster_type", _) => field.options = offered(&offers.cluster_types),
            (Kind::Cluster, "/advanced_config/version", _) => {
                let versions = fleet.map_or(&offers.kafka_versions, |fleet| &fleet.kafka_versions);
                field.options = offered(versions);
                let usual = versions.iter().find(|offer| offer.is_default && field.value.is_empty());
                field.value = usual.map_or(std::mem::take(&mut field.value), |usual| usual.name.clone());
            }
            (Kind::Cluster, "/advanced_config/cluster_access", Some(fleet)) => {
                field.options = offered(&fleet.cluster_access);
            }
            (Kind::Cluster, "/advanced_config/auto_upgrade", Some(fleet)) => {
                let why = fleet.auto_upgrade.reason.clone().unwrap_or_default();
                let yes = field.options.iter_mut().filter(|option| option.value == "true");
                yes.for_each(|option| option.why_not.clone_from(&why));
            }
            (Kind::Cluster, "/advanced_config/storage/class", Some(fleet)) => {
                let known = fleet.storage.classes.iter().flatten();
                field.options = known.map(|name| FormOption::of(name.as_str(), "")).collect();
                field.default = fleet.storage.default_class.clone().unwrap_or_default();
            }
            _ if organization.is_empty() => {}
            (Kind::Cluster, "/infrastructure", _) => {
                let fits = fits(visit, &organization, typed).await;
                let is_known = fits.is_some();
                field.options = fits.unwrap_or_default();
                if is_known && field.options.is_empty() {
                    missing.push(("The organization has no fleet yet, which has to host it.", "/new/fleets"));
                } else if is_known && !mode.is_empty() && !field.options.iter().any(FormOption::is_offered) {
                    missing.push((NO_FIT, "/new/fleets"));
                }
            }
            (Kind::Fleet, "/domain", _) => {
                let domains = named(visit, Kind::BaseDomain, &organization, field).await;
                if domains == Some(0) {
                    let why =
                        "The organization has no base domain yet, below which clients reach its clusters.";
                    missing.push((why, "/new/base-domains"));
                }
            }
            (Kind::Cluster, "/advanced_config/oauth", _) => {
                named(visit, Kind::IdentityProvider, &organization, field).await;
            }
            (Kind::Topic | Kind::User, "/cluster", _) => {
                let clusters = named(visit, Kind::Cluster, &organization, field).await;
                missing.extend(
                    (clusters == Some(0))
                        .then_some(("The organization has no cluster yet.", "/new/clusters")),
                );
            }
            (_, "/cloud_account" | "/advanced_config/tiered_storage_provider/cloud_account", _) => {
                named(visit, Kind::CloudAccount, &organization, field).await;
            }
            _ => {}
        }
    }
    form::use_labels(fields);
    Ok(missing)
}

const NO_FIT: &str = "The cluster fits on no fleet, for the reasons below. Choose another tenancy mode, provider or size in the \
                      second step, or a fleet that has room for it:";

/// Offers the organization's resources of a kind, and returns how many there are. `None` for an organization that doesn't
/// exist, which its own field says.
async fn named(visit: &Visit, kind: Kind, organization: &str, field: &mut FormField) -> Option<usize> {
    let pages = KindPages::of(kind);
    let of = if kind == Kind::Cluster { organization } else { "" };
    let page = [("page_size", LARGEST_PAGE.to_string()), ("organization", of.to_owned())];
    let page = page.each_ref().map(|(name, value)| (*name, value.as_str()));
    let path = with_query(pages.list_path(organization), &page);
    let list = visit.api.get::<ListAnswer<Value>>(&path).await.ok()?;
    let names = list.items.iter().map(|record| self::field(record, pages.name));
    choices(field, list.total, list.next_page_token.is_some(), names);
    Some(list.total)
}

/// Offers all names that a field may have. Of too many, one is typed.
fn choices<'n>(field: &mut FormField, total: usize, are_more: bool, names: impl Iterator<Item = &'n str>) {
    if are_more {
        field.help = format!("{} There are {total}, so type the name of one.", field.help);
    } else {
        field.options = names.map(|name| FormOption::of(name, "")).collect();
    }
}

/// The fleets of an organization, each with whether the cluster fits on it. `None` while the fields before are wrong,
/// which they say themselves.
async fn fits(visit: &Visit, organization: &str, typed: &Typed) -> Option<Vec<FormOption>> {
    let name = Some(typed.text("/identifier")).filter(|name| !name.is_empty());
    let mut cluster = json!({
        "identifier": name,
        "organization": organization,
        "kafka_units": typed.text("/kafka_units").parse::<u32>().unwrap_or(1),
        "cloud_provider": typed.text("/cloud_provider"),
    });
    // Before the mode is chosen, each fleet is judged by its own.
    let mode = typed.text("/tenancy_mode");
    cluster["tenancy_mode"] = json!(if mode.is_empty() { "Shared" } else { mode });
    let answer = visit.api.send(Method::POST, "/v1/fit", Some(&cluster)).await.ok()?;
    let list = serde_json::from_value::<ClusterFitList>(answer).ok()?;
    let option = |fit: FleetFit| {
        let room = |room: &Room| {
            room.limit.map_or_else(|| room.used.to_string(), |limit| format!("{} of {limit}", room.used))
        };
        let (units, clusters) = (room(&fit.kafka_units), room(&fit.clusters));
        let FleetFit { tenancy_mode, status, .. } = &fit;
        let text = format!("{tenancy_mode:?}, {status}: {units} Kafka units and {clusters} clusters in use");
        let why_not = fit.reasons.iter().map(|reason| reason.detail.as_str()).collect::<Vec<_>>().join("; ");
        FormOption { why_not, ..FormOption::of(fit.fleet.fleet.as_str(), text) }
    };
    let mut options: Vec<FormOption> = list.items.into_iter().map(option).collect();
    options.sort_by_key(|option| !option.is_offered());
    Some(options)
}

/// The text of a call that does the same, with secrets left out.
pub fn curl(visit: &Visit, kind: Kind, call: &ApiCall) -> String {
    let ApiCall { method, path, body, tag, mistakes: _ } = call;
    let body = form::without_secrets(kind, body);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let address = quoted(&format!("{}{path}", visit.api_address()));
    let mut text = format!("curl --fail-with-body --request {method} {address}");
    text += " \\\n  --header \"Authorization: Bearer $TOKEN\"";
    text += " \\\n  --header 'Content-Type: application/json'";
    if !tag.is_empty() {
        text += &format!(" \\\n  --header {}", quoted(&format!("If-Match: {tag}")));
    }
    let body = serde_json::to_string_pretty(&body).unwrap_or_default();
    text + " \\\n  --data " + &quoted(&body)
}
