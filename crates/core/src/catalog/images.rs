//! The specs that need a container image which only the settings can name.

use crate::problem::Problem;

/// `remedy` is the setting of the image, and what to do without it.
pub(super) fn without_image(
    image: &Option<String>,
    code: &'static str,
    what: &str,
    remedy: &str,
) -> Option<Problem> {
    image.is_none().then(|| {
        Problem::error(code, format!("the settings of the installation name no image of {what}"))
            .hint(format!("have the administrators of the installation set {remedy}"))
    })
}
