//! Condition types and reasons: a stable part of the API.

/// Makes an enum whose variants are written in the API exactly as they are named here.
macro_rules! api_names {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// All values, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text in the API.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// The value written as `text`, if it is one of ours.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

api_names! {
    /// The three values of a condition's `status`.
    Status {
        /// The condition holds.
        True,
        /// The condition does not hold.
        False,
        /// Not known (yet).
        Unknown,
    }
}

api_names! {
    /// Condition types of a Release.
    ReleaseCondition {
        /// This release is what is deployed for its target.
        Active,
        /// The release was measured to be healthy.
        Healthy,
        /// The release was measured to be so bad that it should be left.
        RollbackRequired,
    }
}

api_names! {
    /// Reasons of the Release condition `Active`.
    ActiveReason {
        /// Just created, never active.
        Initialised,
        /// Deployed and active.
        Deployed,
        /// Another release replaced it.
        Superseded,
        /// A Rollback left it.
        Rollback,
    }
}

api_names! {
    /// Reasons of the Release conditions `Healthy` and `RollbackRequired`.
    HealthReason {
        /// All analyses succeeded.
        AnalysisSucceeded,
        /// An analysis failed.
        AnalysisFailed,
        /// Results are awaited.
        AnalysisInProgress,
        /// An analysis could not give a verdict.
        AnalysisError,
        /// There is nothing to judge by.
        AnalysisMissing,
        /// Added: every workload finished its rollout and stayed ready.
        RolloutSucceeded,
        /// Added: a workload's rollout failed; the message names pod, container and state.
        RolloutFailed,
        /// Added: the rollout is under way or has not been ready for long enough.
        RolloutInProgress,
        /// Added: nothing runs (zero replicas), so nothing can be judged.
        NothingRunning,
        /// Added: the release was left before a verdict was reached.
        NotMeasured,
    }
}

api_names! {
    /// Condition types of a Rollback.
    RollbackCondition {
        /// A deployment has been triggered, nothing less.
        InProgress,
        /// Unknown until the end, then True or False; never absent.
        Succeeded,
        /// `spec.dryRun` is set: nothing is deployed until it is unset.
        DryRun,
    }
}

api_names! {
    /// Reasons of the Rollback condition `InProgress`.
    InProgressReason {
        /// Added: waits for an older Rollback of the target.
        Queued,
        /// Added: waits before the next attempt, or for something outside to recover.
        Waiting,
        /// An attempt is persisted and the backend is being asked.
        DeploymentTriggering,
        /// The deployment runs (InProgress=True).
        DeploymentTriggered,
        /// Ended well.
        Completed,
        /// Ended badly.
        Failed,
        /// Another deployment took over.
        Superseded,
        /// Added: ended at a person's request.
        Cancelled,
        /// Added: there was nothing to do.
        NotNeeded,
    }
}

api_names! {
    /// Reasons of the Rollback condition `Succeeded`.
    SucceededReason {
        /// Added: not finished (Unknown).
        Pending,
        /// The target release is deployed and active (True).
        DeploymentSucceeded,
        /// The backend failed, or refused, and no attempt is left.
        DeploymentFailed,
        /// Another deployment took over.
        DeploymentSuperseded,
        /// Added: `progressDeadlineSeconds` passed.
        DeadlineExceeded,
        /// Added: a person asked for it.
        Cancelled,
        /// Added: what was to be left is no longer active, or this manifest was carried out before.
        NotNeeded,
        /// Added: a precondition can never become true (a release is gone or changed).
        PreconditionFailed,
        /// Added: never admitted by the webhook (rule 9).
        NotAdmitted,
    }
}

api_names! {
    /// Condition types of an AutomatedRollbackPolicy.
    PolicyCondition {
        /// The policy may act.
        Automated,
    }
}

api_names! {
    /// Reasons of the policy condition `Automated`.
    AutomatedReason {
        /// As `spec.enabled` says.
        SetByUser,
        /// Latched after a rollback until a newer release is healthy.
        DisabledByController,
    }
}
