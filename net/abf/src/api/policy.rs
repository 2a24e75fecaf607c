//! `abf_policy_*`: policies and their paths.

use shoal_adj::Family;
use shoal_fib::api::{from_path, path_of, retval};
use shoal_fib::{Fib, Path};
use shoal_message::{Count, FibPath, FibPathNhProto, Message, Retval, Value};
use shoal_module::api::{Call, Dump, Request};
use shoal_rule::Rule;

use super::abf;
use crate::{Abf, AbfError, PolicyInfo};

/// What stands where there is no access list.
const NONE: u32 = u32::MAX;

/// A policy: which packets take which paths.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct AbfPolicy {
    pub policy_id: u32,
    /// An access list, which this router does not have. All bits set for the rule that the policy has, or for all packets
    /// of a new one.
    pub acl_index: u32,
    pub n_paths: Count<u8>,
    #[counted_by(n_paths)]
    pub paths: Vec<FibPath>,
}

/// Makes a policy or adds paths to one; or takes paths away, and without any or with the last one the policy.
#[derive(Message)]
#[message(request)]
pub struct AbfPolicyAddDel {
    pub is_add: bool,
    pub policy: AbfPolicy,
}

/// The paths of a family as tables have them.
fn paths_of(fib: &Fib, family: Family, given: &[FibPath]) -> Result<Vec<Path>, Retval> {
    given.iter().map(|path| path_of(fib, family, path)).collect()
}

impl Request for AbfPolicyAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (abf, fib) = (abf(call)?, call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?);
        let AbfPolicy { policy_id, acl_index, paths, .. } = self.policy;
        let known = abf.rule(policy_id);
        if !self.is_add {
            let paths = paths_of(&fib, known?.family, &paths)?;
            return Ok(abf.remove(policy_id, &paths)?);
        }
        if acl_index != NONE {
            return Err(Retval::NO_SUCH_ENTRY);
        }
        let Some(first) = paths.first() else { return Err(Retval::NO_PATHS_IN_ROUTE) };
        let rule = known.unwrap_or_else(|_| Rule {
            family: if first.proto == FibPathNhProto::Ip6 { Family::Ip6 } else { Family::Ip4 },
            src: None,
            dst: None,
            protocol: None,
            sport: None,
            dport: None,
            dscp: None,
            tcp: None,
        });
        let paths = paths_of(&fib, rule.family, &paths)?;
        abf.add(policy_id, rule, &paths).map_err(|e| match e {
            AbfError::Fib(e) => retval(&e),
            e => e.into(),
        })
    }
}

/// Asks for all policies.
#[derive(Message)]
#[message(request, details = AbfPolicyDetails)]
pub struct AbfPolicyDump {}

/// A policy.
#[derive(Message)]
#[message(reply)]
pub struct AbfPolicyDetails {
    pub policy: AbfPolicy,
}

impl Dump for AbfPolicyDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = AbfPolicyDetails> + 'static {
        let (abf, fib) = (call.get::<Abf>().ok(), call.get::<Fib>().ok());
        let mut after = None;
        std::iter::from_fn(move || {
            let PolicyInfo { id, rule, paths, .. } = abf.as_ref()?.policy_after(after)?;
            after = Some(id);
            let fib = fib.as_ref()?;
            let paths = paths.iter().map(|path| from_path(fib, rule.family, None, path)).collect();
            let policy = AbfPolicy { policy_id: id, acl_index: NONE, n_paths: Count::default(), paths };
            Some(AbfPolicyDetails { policy })
        })
    }
}
