//! How a container behaves, by the tag of its image.

/// See the table of [`super`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    Runs,
    NeverReady,
    CrashLoop,
    ImageMissing,
    BadConfig,
}

impl Behaviour {
    pub(super) fn of(image: &str) -> Self {
        let tag = tag(image);
        [
            ("image-missing", Self::ImageMissing),
            ("bad-config", Self::BadConfig),
            ("crash-loop", Self::CrashLoop),
            ("never-ready", Self::NeverReady),
        ]
        .into_iter()
        .find_map(|(word, behaviour)| tag.contains(word).then_some(behaviour))
        .unwrap_or(Self::Runs)
    }
}

/// What follows the colon of the last path segment; a registry's port is not a tag.
fn tag(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let name = name.split('@').next().unwrap_or_default();
    name.split_once(':').map_or("", |(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tag_counts() {
        for (image, behaviour) in [
            ("registry.example/web:1.0", Behaviour::Runs),
            ("registry.example/web", Behaviour::Runs),
            ("registry.example:5000/crash-loop/web", Behaviour::Runs),
            ("crash-loop:1.0", Behaviour::Runs),
            ("registry.example:5000/web:v2-crash-loop", Behaviour::CrashLoop),
            ("web:never-ready", Behaviour::NeverReady),
            ("web:v3-image-missing@sha256:0123", Behaviour::ImageMissing),
            ("web:bad-config", Behaviour::BadConfig),
        ] {
            assert_eq!(Behaviour::of(image), behaviour, "{image}");
        }
    }
}
