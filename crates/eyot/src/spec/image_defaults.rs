//! The defaults of an image, where a spec leaves something open.

use super::ValidSpec;
use super::checks::{check_env, check_user, check_workdir};
use crate::error::Result;
use crate::path::SandboxPath;

/// An image's own settings for running commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageDefaults {
    /// Variables.
    pub env: Vec<(String, String)>,
    /// The directory in which commands start.
    pub workdir: Option<String>,
    /// The user who runs them.
    pub user: Option<String>,
}

/// Variables that say who and where somebody is: those are the sandbox's to say.
const OF_THE_SANDBOX: [&str; 6] = ["HOME", "HOSTNAME", "LOGNAME", "PWD", "SHELL", "USER"];

impl ValidSpec {
    /// The same spec on an image with these defaults: each counts where the spec leaves it open. A working directory
    /// that can't be one (`/`, or in a directory that sandboxes own) is not taken.
    ///
    /// # Errors
    /// `Invalid`: a variable or the user of the image can't be a sandbox's.
    pub fn with_image_defaults(&self, defaults: ImageDefaults) -> Result<Self> {
        let mut fitted = self.clone();
        for (name, value) in defaults.env {
            let is_open = !OF_THE_SANDBOX.contains(&name.as_str());
            if is_open {
                fitted.spec.env.entry(name).or_insert(value);
            }
        }
        check_env("image's env", &fitted.spec.env)?;
        fitted.spec.user = fitted.spec.user.or(defaults.user);
        check_user(fitted.spec.user.as_deref())?;
        if let Some(workdir) =
            defaults.workdir.filter(|_| self.has_default_workdir).and_then(|path| usable(&path))
        {
            fitted.spec.workdir = Some(workdir.clone());
            fitted.workdir = workdir;
        }
        Ok(fitted)
    }
}

fn usable(path: &str) -> Option<SandboxPath> {
    let path = SandboxPath::parse(&format!("/{}", path.trim_start_matches('/'))).ok()?;
    check_workdir(&path, Some("an image")).ok().map(|()| path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SandboxSpec;

    fn defaults(workdir: &str) -> ImageDefaults {
        let env = [("A", "image"), ("B", "image"), ("HOME", "/root")];
        ImageDefaults {
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            workdir: Some(workdir.to_owned()),
            user: Some("node".to_owned()),
        }
    }

    #[test]
    fn an_images_default_counts_where_the_spec_leaves_it_open() {
        let fitted =
            SandboxSpec::default().validate().unwrap().with_image_defaults(defaults("/usr/src/app")).unwrap();
        assert_eq!(fitted.workdir().as_str(), "/usr/src/app");
        assert_eq!(fitted.spec().user.as_deref(), Some("node"));
        assert_eq!(fitted.env().len(), 2);
        let spec = SandboxSpec {
            workdir: Some(SandboxPath::parse("/home/user").unwrap()),
            user: Some("root".to_owned()),
            env: [("A".to_owned(), "mine".to_owned())].into(),
            ..SandboxSpec::default()
        };
        let fitted = spec.validate().unwrap().with_image_defaults(defaults("/app")).unwrap();
        assert_eq!((fitted.workdir().as_str(), fitted.spec().user.as_deref()), ("/home/user", Some("root")));
        assert_eq!((fitted.env()["A"].as_str(), fitted.env()["B"].as_str()), ("mine", "image"));
    }

    #[test]
    fn a_working_directory_that_can_not_be_one_is_not_taken() {
        for path in ["/", "", "/proc/x", "/etc", "/a/../.."] {
            let fitted =
                SandboxSpec::default().validate().unwrap().with_image_defaults(defaults(path)).unwrap();
            assert_eq!(fitted.workdir().as_str(), "/workspace", "{path}");
        }
    }

    #[test]
    fn a_spec_that_was_fitted_is_valid_once_more() {
        let spec = SandboxSpec { image: Some("node:22".to_owned()), ..SandboxSpec::default() };
        let fitted = spec.validate().unwrap().with_image_defaults(defaults("/usr/src/app")).unwrap();
        let again =
            fitted.spec().clone().validate().unwrap().with_image_defaults(defaults("/other")).unwrap();
        assert_eq!(again.workdir().as_str(), "/usr/src/app");
    }
}
