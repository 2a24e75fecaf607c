//! How long packets may be that go the way to an address in one piece.

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::FibIndex;
use shoal_infra::Guard;

use crate::data::{FibTables, TABLES_IN_A_ROW};

/// Buckets of a balance that are asked: enough for the members of most.
const BUCKETS: u32 = 8;

/// The shortest of a balance's members. One that leads to another table does not say.
fn of_balance(found: AdjIndex, adjacencies: &AdjTable, guard: Guard<'_>) -> u16 {
    let adj = adjacencies.of_leaf(found, guard);
    let members = (0..adj.buckets().min(BUCKETS)).map(|bucket| adjacencies.balance(adj, bucket));
    members.map(|member| adjacencies.get(member, guard).mtu).min().unwrap_or(u16::MAX)
}

fn through_tables(
    first: FibIndex,
    adjacencies: &AdjTable,
    guard: Guard<'_>,
    find: impl Fn(FibIndex) -> AdjIndex,
) -> u16 {
    let mut fib = first;
    for _ in 0..TABLES_IN_A_ROW {
        let found = find(fib);
        let adj = adjacencies.of_leaf(found, guard);
        if adj.is_balance() {
            return of_balance(found, adjacencies, guard);
        }
        if adj.kind() != AdjKind::Lookup {
            return adj.mtu;
        }
        fib = FibIndex(adj.table());
    }
    u16::MAX
}

impl FibTables {
    /// Bytes of the longest packet that goes to an IPv4 address (host order) in one piece; [`u16::MAX`] where no link limits it,
    /// as for an address of this router.
    pub fn way_mtu(&self, (fib, addr): (FibIndex, u32), adjacencies: &AdjTable, guard: Guard<'_>) -> u16 {
        through_tables(fib, adjacencies, guard, |fib| self.lookup(fib, addr, guard))
    }

    /// The same for an IPv6 address.
    pub fn way_mtu_ip6(
        &self,
        (fib, addr): (FibIndex, u128),
        adjacencies: &AdjTable,
        guard: Guard<'_>,
    ) -> u16 {
        through_tables(fib, adjacencies, guard, |fib| self.lookup_ip6(fib, addr, guard))
    }
}
