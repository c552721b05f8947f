//! `streamfleet sign-in`: a link to the web UI of a running daemon.

use clap::Args;
use serde_json::json;

use crate::api::answer::CreatedSignInLink;
use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::settings::{Settings, TreeArgs};
use crate::http::query::encoded;
use crate::names::Identifier;
use crate::state::Reach;

/// Create a link that signs a person in to the web UI of the running `serve`.
///
/// The link works once, within 15 minutes. Whoever opens it acts as that person, with that person's rights.
#[derive(Debug, Args)]
pub struct SignIn {
    /// The e-mail address of a super user, or of a member of an organization.
    #[arg(value_name = "EMAIL")]
    email: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// The organization to sign in for; `root` for all, as a super user. [default: `root` for a super user, otherwise
    /// the only organization that the person is a member of]
    #[arg(long, value_name = "ORGANIZATION")]
    organization: Option<Identifier>,
    /// Create no link, but let another account at the OpenID Connect issuer sign in with this address: at its first
    /// sign-in, an account is bound to its address.
    #[arg(long, conflicts_with = "organization")]
    forget_account: bool,
}

pub fn run(verb: &SignIn, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let what = if verb.forget_account { "cannot forget the account" } else { "cannot create a sign-in link" };
    let mut daemon = RunningDaemon::required(&settings, what)?;
    if verb.forget_account {
        let path = format!("/v1/sign-in-accounts/{}", encoded(&verb.email));
        daemon.order(DaemonRequest::delete(path), console)?;
        console.print(&format!(
            "{} is bound to no account; the next one that signs in with it is\n",
            verb.email
        ))?;
        return Ok(exit::OK);
    }
    let body = json!({"email": verb.email, "organization": verb.organization}).to_string().into_bytes();
    let CreatedSignInLink { link, expires_at, organization, warnings } =
        daemon.ask(DaemonRequest::post("/v1/sign-in-links", Some(body)), console)?;
    let place = match organization {
        Reach::All => "all organizations".to_owned(),
        Reach::Organization(organization) => format!("organization {organization}"),
    };
    let email = &verb.email;
    console.tell(&format!("This link signs in as {email} for {place}, once and until {expires_at}:\n"));
    console.print(&format!("{link}\n"))?;
    warnings.iter().for_each(|warning| console.warn(warning));
    Ok(exit::OK)
}
