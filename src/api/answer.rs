//! Answers of the API that the command line reads, too.

mod fit;
mod offers;

use jiff::Timestamp;
use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::Mode;
use crate::names::{FleetKey, Identifier, ResourceKey, SpecPath};
use crate::plan::preflight::ClusterFact;
use crate::plan::{OutlineSection, Summary};
use crate::problem::{Origin, Problem};
use crate::spec::{Commit, Role};
use crate::state::{Access, NewToken, Reach, SignInProof, Token};

pub use fit::{ClusterFitList, FitReason, FleetFit, Room};
pub use offers::{FleetOffers, Offer, OfferedFeature, Offers, StorageOffers};

/// A page of a list.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListAnswer<T> {
    pub items: Vec<T>,
    pub next_page_token: Option<String>,
    pub total: usize,
}

/// A page of the changes of a plan, in sentences.
///
/// First come those that wait for an approval, then those that destroy something, those that wait otherwise, those that
/// disrupt clients, and the rest.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanChangeList {
    /// The plan's id.
    pub plan: String,
    /// The time of planning.
    pub created_at: Timestamp,
    /// The commit, if the specs come from a git repository and the caller is a super user.
    pub commit: Option<Commit>,
    /// The number of resources by what happens to them, in all of the plan.
    pub summary: Summary,
    /// The summary as a sentence.
    pub sentence: String,
    /// The number of changes that wait for an approval, in all of the plan.
    pub to_approve: usize,
    /// The first 50 problems of the specs.
    pub problems: Vec<Problem>,
    /// The organizations and fleets of the changes on this page, each with these changes.
    pub sections: Vec<OutlineSection>,
    /// The token of the next page; null on the last one.
    pub next_page_token: Option<String>,
    /// The number of changes on all pages. A fleet that has news and no changes counts, too.
    pub total: usize,
}

/// The result of an approval.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanApproval {
    /// The approval id.
    pub id: String,
    /// The fleet, such as `acme/eu`; null if its steps had been approved before.
    pub fleet: Option<FleetKey>,
    /// The approved steps, such as `delete cluster acme/orders`; null if they had been approved before.
    pub changes: Option<String>,
    /// The person who approved it, now or before.
    pub approved_by: String,
}

/// The document of a resource, as its file has it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SpecFile {
    /// The file, relative to the folder of the specs; null if there is no document.
    pub path: Option<SpecPath>,
    /// The first line of the document in its file, counted from 1.
    pub first_line: Option<u32>,
    /// The last line of the document in its file.
    pub last_line: Option<u32>,
    /// The document with its comments. In place of a secret it says `‹sealed›` or `‹hidden›`, in one line; a comment that looks
    /// like a secret is hidden, too.
    pub text: Option<String>,
    /// The specs that the document is from: the commit, or a digest of all of them; null if it was just written to a folder.
    pub revision: Option<String>,
    /// Why there is no document; null if there is one.
    pub reason: Option<String>,
}

/// The file that a change would write.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProposedEdit {
    /// The file, relative to the folder of the specs.
    pub path: SpecPath,
    /// The message of its commit: `Create cluster acme/orders`.
    pub message: String,
    /// The document as the last plan read it, with secrets hidden; null if there is none.
    pub before: Option<String>,
    /// The document after the change, with secrets hidden; null if it is deleted.
    pub after: Option<String>,
    /// The effects of the change on secrets, which these texts hide, in sentences.
    pub secrets: Vec<String>,
    /// The problems, each with what to do about it.
    pub warnings: Vec<String>,
}

/// The facts of the Kubernetes cluster of a new kubeconfig.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FleetCheck {
    /// Whether its API server answered, and the fleet may use it.
    pub reached: bool,
    /// Why not; null if it was reached.
    pub reason: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
    /// The finding.
    pub facts: Vec<ClusterFact>,
}

/// The git commits that changed the file of a resource, the newest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResourceHistory {
    /// At most 50. There may be fewer, or none, although there are older ones.
    pub items: Vec<ResourceCommit>,
    /// The token for older commits; null if there are none.
    pub next_page_token: Option<String>,
    /// Why there is no history, or why it ends too early; null if it is whole.
    pub reason: Option<String>,
}

/// A commit that changed the file of a resource.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResourceCommit {
    /// Its id, in hexadecimal.
    pub id: String,
    /// When it was committed.
    pub at: String,
    /// Its author; null if that is no member of the organization, and the caller no super user.
    pub author: Option<CommitAuthor>,
    /// The first line of its message; null if it also changed something outside of the organization's folder, and the
    /// caller is no super user.
    pub subject: Option<String>,
    /// The file, relative to the folder of the specs.
    pub path: SpecPath,
}

/// The author of a commit, as the commit says.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommitAuthor {
    pub name: String,
    pub email: String,
}

/// A new token with its secret, which is shown once.
#[derive(Serialize, Deserialize)]
pub struct ShownToken {
    #[serde(flatten)]
    pub kept: Token,
    /// The secret that a caller sends.
    pub token: String,
}

/// A new token, and what to know of it.
#[derive(Serialize, Deserialize)]
pub struct CreatedToken {
    #[serde(flatten)]
    pub shown: ShownToken,
    pub warnings: Vec<String>,
}

/// A link that signs in to the web UI, once. Whoever has it acts as the person that it is for.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CreatedSignInLink {
    /// The link, which is never shown again.
    pub link: String,
    /// The time until which it works.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
    /// The organization that it signs in for; `*` for all.
    pub organization: Reach,
    /// A warning, such as that the person has no role in the organization and the link is useless.
    pub warnings: Vec<String>,
}

/// This installation, and the specs that it carries out.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The version of Streamfleet.
    pub version: String,
    /// The id of the installation, which everything that it makes carries.
    pub installation: Uuid,
    /// The changes that are made automatically.
    pub mode: Mode,
    /// The id of the last plan.
    pub plan: String,
    /// The time of the last plan: how old the newest round is.
    pub planned_at: Timestamp,
    /// The hash of the specs that the last plan is of.
    pub revision: String,
    /// The commit with these specs, if they come from a git repository and the caller is a super user.
    pub commit: Option<Commit>,
}

/// A member of an organization.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationMember {
    /// The e-mail address.
    pub email: String,
    /// The role.
    pub role: Role,
    /// The place of the entry in the spec; null if the organization is as it was last applied.
    pub source: Option<Origin>,
}

/// The end of a certificate.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExpiringCertificate {
    /// The base domain that has it.
    pub base_domain: ResourceKey,
    /// The time at which it expires.
    #[schemars(extend("format" = "date-time"))]
    pub not_after: String,
}

/// The caller's identity.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallerDescription {
    /// The e-mail address of the token's owner; null on the socket.
    pub email: Option<String>,
    /// The name of the token. On the socket, the name of the user, or null if the client sends none.
    pub name: Option<String>,
    /// The id of the token; null on the socket.
    pub token_id: Option<Uuid>,
    /// The organization that the token is valid for; `*` for all.
    pub organization: Reach,
    /// The most that the token may be used for. The role of its owner limits it further.
    pub access: Access,
    /// How the person signed in; null for a token that is no session, and on the socket.
    pub sign_in: Option<SignInProof>,
    /// The time of the token's creation; null on the socket.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// The time of the token's expiry; null on the socket.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// Another text whenever there is another plan, or an event that the caller may see: a client that polls reads the rest
    /// only then. Null on the socket.
    pub revision: Option<String>,
    /// Whether the owner is a super user, who has full rights wherever the token is valid.
    pub is_super_user: bool,
    /// The organizations that the owner is a member of and the token is valid for.
    pub organizations: Vec<CallerOrganization>,
}

impl CallerDescription {
    /// Whether the caller has an access in an organization.
    pub fn may(&self, organization: &str, access: Access) -> bool {
        let is_within = match &self.organization {
            Reach::All => true,
            Reach::Organization(own) => own.as_str() == organization,
        };
        let has = |of: &CallerOrganization| of.identifier.as_str() == organization && of.access >= access;
        is_within && (self.is_super_user && self.access >= access || self.organizations.iter().any(has))
    }

    /// Whether the caller has an access in any organization.
    pub fn may_somewhere(&self, access: Access) -> bool {
        self.is_super_user && self.access >= access || self.organizations.iter().any(|of| of.access >= access)
    }
}

/// A membership of the caller.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallerOrganization {
    /// The organization.
    pub identifier: Identifier,
    /// The role in the organization's spec.
    pub role: Role,
    /// The caller's rights there: those that the role and the token both allow.
    pub access: Access,
    /// The place of the member's entry in the spec; null if the organization is as it was last applied and its
    /// document can't be used.
    pub source: Option<Origin>,
}

impl From<NewToken> for ShownToken {
    fn from(NewToken { token, secret }: NewToken) -> ShownToken {
        ShownToken { kept: token, token: secret.expose_secret().to_owned() }
    }
}
