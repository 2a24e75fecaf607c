//! What clients are answered when an operation fails.

use shoal_adj::AdjError;
use shoal_message::Retval;

use crate::FibError;

/// VPP's number for what is wrong with a table operation.
pub fn retval(error: &FibError) -> Retval {
    match error {
        FibError::NoTable { .. } | FibError::NoIndex(_) => Retval::NO_SUCH_FIB,
        FibError::TableExists(_) | FibError::NameTaken(..) | FibError::SourceTaken(_) => Retval::VALUE_EXIST,
        FibError::TableInUse { .. } => Retval::RSRC_IN_USE,
        FibError::NoEntry { .. } | FibError::OtherSource { .. } => Retval::NO_SUCH_ENTRY,
        FibError::NoPath { .. } => Retval::NEXT_HOP_NOT_FOUND_MP,
        FibError::NoPaths => Retval::NO_PATHS_IN_ROUTE,
        FibError::TooManySources(_)
        | FibError::TooManyTables(_)
        | FibError::TooManyPaths(_)
        | FibError::Backlog(_) => Retval::LIMIT_EXCEEDED,
        FibError::Mixed(_) => Retval::INVALID_ADDRESS_FAMILY,
        FibError::Full { .. }
        | FibError::NoMemory { .. }
        | FibError::Bulk { .. }
        | FibError::Paths(_)
        | FibError::Counter(_)
        | FibError::Memory(..) => Retval::TABLE_TOO_BIG,
        FibError::Adj(AdjError::Interface(_)) => Retval::NO_MATCHING_INTERFACE,
        FibError::AllCount { .. } => Retval::FEATURE_ALREADY_ENABLED,
        FibError::DefaultTable
        | FibError::SourcePriority(_)
        | FibError::NextHop(_)
        | FibError::LinkLocal(_)
        | FibError::Broadcast
        | FibError::Weight
        | FibError::Count { .. }
        | FibError::Adj(_) => Retval::INVALID_VALUE,
    }
}
