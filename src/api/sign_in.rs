//! Links that sign in to the web UI. A link holds the secret of a token that lives for a quarter of an hour. The
//! UI exchanges it once, for the token of a session.

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};

use crate::names::Identifier;
use crate::record;
use crate::state::{Access, AddTokenError, Reach, State, TOKEN_PREFIX, Token, TokenGrant, TokenPurpose};

/// The name of a link's token.
pub const TOKEN_NAME: &str = "sign-in link";

const LIFETIME: SignedDuration = SignedDuration::from_mins(15);

/// The address that links lead to, and the super users.
#[derive(Debug, Clone)]
pub struct SignInSettings {
    /// The link of the web UI, with a slash at the end; `None` if no port is open.
    pub ui: Option<String>,
    pub super_users: Vec<String>,
}

/// The person who signs in, and the organization.
#[derive(Debug, Clone)]
pub struct SignInRequest {
    /// An e-mail address.
    pub owner: String,
    pub organization: Reach,
}

/// A new link. Whoever has it acts as the owner of its token.
#[derive(Debug)]
pub struct SignInLink {
    pub token: Token,
    pub link: SecretString,
}

impl SignInLink {
    /// Creates a link below that of the web UI, and records who created it.
    ///
    /// # Errors
    /// When the owner has too many tokens, or the token can't be recorded.
    pub fn create(
        state: &State,
        ui: &str,
        request: SignInRequest,
        by: &str,
        now: Timestamp,
    ) -> Result<SignInLink, AddTokenError> {
        let SignInRequest { owner, organization } = request;
        let name = TOKEN_NAME.to_owned();
        let grant = TokenGrant {
            name,
            owner,
            organization,
            access: Access::Admin,
            purpose: TokenPurpose::Link,
            sign_in: None,
            lasts: LIFETIME,
        };
        let made = state.grant_token(grant, by, now)?;
        let organization = match &made.token.organization {
            Reach::All => Identifier::ROOT,
            Reach::Organization(organization) => organization.as_str(),
        };
        // The digits alone, so that nobody takes the link for one that contains an API token.
        let digits = made.secret.expose_secret().trim_start_matches(TOKEN_PREFIX);
        let link = format!("{ui}sign-in?organization={organization}&link={digits}");
        Ok(SignInLink { link: SecretString::from(link), token: made.token })
    }
}

/// Logs a link for the first super user if no token was ever created: then nobody can sign in by another way than
/// on this host, and who reads the log may do that anyway.
pub fn log_first_link(state: &State, settings: &SignInSettings, by: &str) {
    let (Some(ui), Some(owner)) = (&settings.ui, settings.super_users.first()) else { return };
    if state.has_made_tokens() {
        return;
    }
    let request = SignInRequest { owner: owner.clone(), organization: Reach::All };
    match SignInLink::create(state, ui, request, by, Timestamp::now()) {
        Ok(SignInLink { token, link }) => tracing::info!(
            "sign in to the web UI as {owner}, once and until {}: {}",
            record::timestamp(token.expires_at),
            link.expose_secret()
        ),
        Err(error) => tracing::warn!(
            %error,
            hint = "create one with: streamfleet sign-in",
            "cannot create the first link that signs in to the web UI"
        ),
    }
}
