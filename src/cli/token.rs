//! `streamfleet token`: manages the tokens of API callers.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use crate::api::answer::{CreatedToken, ShownToken};
use crate::api::caller::{missing_organization, organizations, shortfall};
use crate::catalog::ResolvedTree;
use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::OutputFormat;
use crate::cli::round;
use crate::cli::settings::{Settings, TreeArgs};
use crate::cli::{command, why};
use crate::http::problem::code;
use crate::names::Identifier;
use crate::record;
use crate::round::Installation;
use crate::spec::Documents;
use crate::state::{
    Access, AddTokenError, MAX_TOKEN_DAYS, Reach, RevocationOutcome, State, TOKEN_DAYS, Token, TokenOrder,
};

/// Create, list and revoke the tokens of API callers.
///
/// A token acts for a person. It may do what it was created for, as far as that person may: a super user
/// named in the settings, or a member of an organization by its spec. While `serve` runs, the request is
/// passed to it.
#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Create a token and print it once: only its digest is kept.
#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    tree: TreeArgs,
    /// The name of the token, for the list and the audit trail.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The e-mail address of the person that the token acts for.
    #[arg(long, value_name = "EMAIL")]
    owner: String,
    /// The organization that the token is valid for.
    #[arg(long, value_name = "ORGANIZATION", required_unless_present = "all_organizations")]
    organization: Option<Identifier>,
    /// Valid for all organizations, present and future.
    #[arg(long, conflicts_with = "organization")]
    all_organizations: bool,
    /// The most that the token may be used for: `write` includes `read`, and `admin` includes everything.
    #[arg(long, value_name = "ACCESS", default_value = "read", value_parser = access())]
    access: Access,
    /// How many days the token is valid.
    #[arg(long, value_name = "DAYS", default_value_t = TOKEN_DAYS, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TOKEN_DAYS)))]
    days: u32,
    /// Print only the token, or JSON or YAML with all its details.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

/// List the valid tokens: their owners, what they are for and when they expire.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    tree: TreeArgs,
    /// Also list tokens that expired or were revoked in the last 90 days; those for a day, in the last day.
    #[arg(long)]
    all: bool,
    /// Print a table, JSON or YAML.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

/// Revoke a token. It is invalid from then on.
#[derive(Debug, Args)]
pub struct Revoke {
    /// The token's id, or its name if exactly one valid token has it.
    #[arg(value_name = "TOKEN")]
    token: String,
    #[command(flatten)]
    tree: TreeArgs,
}

pub fn run(verb: &TokenVerb, console: &mut Console) -> Result<u8, Failure> {
    match verb {
        TokenVerb::Create(verb) => create(verb, console),
        TokenVerb::List(verb) => list(verb, console),
        TokenVerb::Revoke(verb) => revoke(verb, console),
    }
}

fn create(verb: &Create, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let order = verb.order();
    match RunningDaemon::of(&settings)? {
        Some(mut daemon) => {
            let body = serde_json::to_vec(&order)
                .map_err(|error| Failure::during("cannot write the output", &error))?;
            let CreatedToken { shown, warnings } =
                daemon.ask(DaemonRequest::post("/v1/tokens", Some(body)), console)?;
            verb.show(&shown, &settings, console)?;
            warnings.iter().for_each(|warning| console.warn(warning));
        }
        None => {
            let installation = round::open(&settings, round::StateAccess::Write, console)?;
            let checked = check(&installation, &settings);
            let missing = checked.as_ref().and_then(|(documents, checked)| {
                missing_organization(&order.organization, documents, &checked.recorded)
            });
            if let Some((why, hint)) = missing {
                return Err(Failure::usage(why).hint(hint));
            }
            let shown = made(&installation, order)?;
            verb.show(&shown, &settings, console)?;
            let lacking = checked.and_then(|(_, checked)| missing_rights(&checked, &settings, &shown.kept));
            lacking.iter().for_each(|lacks| console.warn(lacks));
        }
    }
    Ok(exit::OK)
}

/// Creates the token in the state, where no daemon runs.
fn made(installation: &Installation, order: TokenOrder) -> Result<ShownToken, Failure> {
    let Some(state) = &installation.state else {
        return Err(Failure::new("cannot create a token without a state"));
    };
    let made = state.add_token(order, &round::actor(), Timestamp::now()).map_err(|why| match why {
        AddTokenError::Order(fault) => Failure::usage(fault.why).hint(fault.hint),
        AddTokenError::State(error) => Failure::of_state("cannot create the token", &error),
    })?;
    Ok(made.into())
}

/// The documents and the checked catalog; `None` if the specs can't be read.
fn check(installation: &Installation, settings: &Settings) -> Option<(Arc<Documents>, ResolvedTree)> {
    let documents = round::read(settings).ok()?;
    let checked = installation.check(&documents, Timestamp::now()).ok()?;
    Some((documents, checked))
}

/// Describes which rights of a token its owner lacks by the specs.
fn missing_rights(checked: &ResolvedTree, settings: &Settings, token: &Token) -> Option<String> {
    let super_users = &settings.config.api.super_user_emails;
    shortfall("token", token, super_users, organizations(&checked.catalog, &token.organization))
}

fn list(verb: &List, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let now = Timestamp::now();
    let mut tokens = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => known(&mut daemon, console)?,
        None => recorded(&settings, console)?,
    };
    tokens.retain(|token: &Token| verb.all || token.is_valid_at(now));
    let text = match verb.format.data(&tokens)? {
        Some(text) => text,
        None if tokens.is_empty() => {
            let create = command::line(&["token", "create", &settings.arguments, "--help"]);
            format!("There are no valid tokens; to create one: {create}\n")
        }
        None => table(&tokens, now),
    };
    console.print(&text)?;
    Ok(exit::OK)
}

/// All tokens, those of sessions included, the oldest first.
fn known(daemon: &mut RunningDaemon, console: &mut Console) -> Result<Vec<Token>, Failure> {
    let mut tokens: Vec<Token> = daemon.list("/v1/tokens", console)?;
    tokens.extend(daemon.list::<Token>("/v1/sessions", console)?);
    tokens.sort_by_key(|token| token.created_at);
    Ok(tokens)
}

fn recorded(settings: &Settings, console: &mut Console) -> Result<Vec<Token>, Failure> {
    let state = round::open_state(settings, round::StateAccess::ReadOnly, console)?;
    Ok(state.as_ref().map(State::tokens).unwrap_or_default())
}

fn revoke(verb: &Revoke, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let now = Timestamp::now();
    let revoked = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => {
            let known = known(&mut daemon, console)?;
            let token = meant(&verb.token, &known, now, &settings)?;
            let path = format!("/v1/tokens/{}", token.id);
            match token.revoked_at {
                Some(_) => RevocationOutcome::Before(token.clone()),
                None => match daemon.order(DaemonRequest::delete(path), console) {
                    Ok(()) => RevocationOutcome::Now(token.clone()),
                    Err(error) if error.is(&code::NOT_FOUND) => RevocationOutcome::Unknown,
                    Err(error) => return Err(error.into()),
                },
            }
        }
        None => {
            let id = meant(&verb.token, &recorded(&settings, console)?, now, &settings)?.id;
            let state = round::open_state(&settings, round::StateAccess::Existing, console)?;
            let revoked = state.map(|state| state.revoke_token(id, &round::actor(), now)).transpose();
            let failed = |error| Failure::of_state("cannot revoke the token", &error);
            revoked.map_err(failed)?.unwrap_or(RevocationOutcome::Unknown)
        }
    };
    let text = match revoked {
        RevocationOutcome::Now(token) => format!("Revoked {token}. It is no longer valid.\n"),
        RevocationOutcome::Before(token) => {
            let at = token.revoked_at.map(record::timestamp).unwrap_or_default();
            format!("{token} was revoked already, at {at}.\n")
        }
        RevocationOutcome::Unknown => return Err(unknown(&verb.token, &settings)),
    };
    console.print(&text)?;
    Ok(exit::OK)
}

/// Finds a token by id or name. Valid tokens win over expired and revoked ones of the same name.
fn meant<'k>(
    named: &str,
    known: &'k [Token],
    now: Timestamp,
    settings: &Settings,
) -> Result<&'k Token, Failure> {
    if let Ok(id) = named.parse::<Uuid>() {
        return known.iter().find(|token| token.id == id).ok_or_else(|| unknown(named, settings));
    }
    let so_named = known.iter().filter(|token| token.name == named);
    let (holding, others): (Vec<&Token>, Vec<&Token>) = so_named.partition(|token| token.is_valid_at(now));
    match (holding.as_slice(), others.as_slice()) {
        ([token], _) | ([], [.., token]) => Ok(token),
        ([], []) => Err(unknown(named, settings)),
        (several, _) => {
            let ids: Vec<String> =
                several.iter().map(|token| format!("{} of {}", token.id, token.owner)).collect();
            Err(Failure::new(format!("{} valid tokens have the name {named}", several.len()))
                .hint(format!("use an id: {}", ids.join(", "))))
        }
    }
}

fn unknown(named: &str, settings: &Settings) -> Failure {
    let failure = Failure::new(match crate::state::looks_like_token(named) {
        // The argument is the secret itself, which must not be repeated in any output.
        true => "this is a token itself, not its id or name".to_owned(),
        false => format!("there is no token {named}"),
    });
    failure.hint(format!(
        "list the tokens with: {}",
        command::line(&["token", "list", &settings.arguments, "--all"])
    ))
}

fn table(tokens: &[Token], now: Timestamp) -> String {
    let ends = |token: &Token| match token.revoked_at {
        Some(at) => format!("revoked {} ago", why::format_age(now.duration_since(at))),
        None if token.expires_at <= now => {
            format!("expired {} ago", why::format_age(now.duration_since(token.expires_at)))
        }
        None => format!("in {}", why::format_age(token.expires_at.duration_since(now))),
    };
    let heads = ["NAME", "OWNER", "ORGANIZATION", "ACCESS", "ENDS", "ID"].map(str::to_owned);
    let row = |token: &Token| {
        let Token { id, name, owner, organization, access, .. } = token;
        [
            name.clone(),
            owner.clone(),
            organization.to_string(),
            access.to_string(),
            ends(token),
            id.to_string(),
        ]
    };
    let rows: Vec<[String; 6]> = [heads].into_iter().chain(tokens.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  "));
        format!("{}{}\n", cells.collect::<String>(), row[5])
    };
    rows.iter().map(line).collect()
}

impl Create {
    fn order(&self) -> TokenOrder {
        let Create { name, owner, organization, access, days, .. } = self;
        let organization = organization.clone().map_or(Reach::All, Reach::Organization);
        TokenOrder { name: name.clone(), owner: owner.clone(), organization, access: *access, days: *days }
    }

    /// Prints only the token on standard output, so that it can be piped into a file without being shown.
    fn show(&self, shown: &ShownToken, settings: &Settings, console: &mut Console) -> Result<(), Failure> {
        let Token { id, name, owner, expires_at, .. } = &shown.kept;
        let (scope, until) = (shown.kept.scope(), record::timestamp(*expires_at));
        let revoke = command::line(&["token", "revoke", &id.to_string(), &settings.arguments]);
        console.tell(&format!(
            "Created token {name} for {owner}: {scope}, until {until}.\nIt is shown only once. To revoke it: {revoke}\n"
        ));
        let text = self.format.data(shown)?.unwrap_or_else(|| format!("{}\n", shown.token));
        console.print(&text)
    }
}

fn access() -> impl clap::builder::TypedValueParser<Value = Access> {
    let words = PossibleValuesParser::new(Access::ALL.map(Access::as_str));
    words.map(|word| Access::ALL.into_iter().find(|access| access.as_str() == word).unwrap_or(Access::Read))
}
