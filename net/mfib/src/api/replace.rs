//! `ip_table_replace_begin`, `ip_table_replace_end`, `ip_table_flush`: what clients contribute to a table, all at once.
//! There may be a million routes, so others are served meanwhile.

use std::future::Future;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::api::IpTable;
use shoal_fib::{Fib, FibError, FibIndex, Sweep, Walk};
use shoal_message::{Message, Retval};
use shoal_module::api::{Call, Task};
use shoal_module::cli::Pace;

use crate::Mfib;

/// Says that all routes of a table will be added again. Those that are not go at `ip_table_replace_end`; until then all
/// stay.
#[derive(Message)]
#[message(request)]
pub struct IpTableReplaceBegin {
    /// The table.
    pub table: IpTable,
}

/// Takes away the routes from the API that were not added since `ip_table_replace_begin`.
#[derive(Message)]
#[message(request)]
pub struct IpTableReplaceEnd {
    /// The table.
    pub table: IpTable,
}

/// Takes away all routes from the API.
#[derive(Message)]
#[message(request)]
pub struct IpTableFlush {
    /// The table.
    pub table: IpTable,
}

/// A table's routes to one host, and those to many.
struct Tables {
    fib: Rc<Fib>,
    mfib: Rc<Mfib>,
    family: Family,
    index: FibIndex,
}

impl Tables {
    fn of(call: &Call, table: &IpTable) -> Result<Tables, Retval> {
        let fib = call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)?;
        let mfib = call.get::<Mfib>().map_err(|_| Retval::UNSPECIFIED)?;
        let family = table.family();
        let index = fib.index_of(family, table.table_id).map_err(|e| shoal_fib::api::retval(&e))?;
        Ok(Tables { fib, mfib, family, index })
    }

    async fn each(&self, act: impl Fn(&Fib, &mut Walk) -> Result<(), FibError>) -> Result<(), Retval> {
        let failed = |e: FibError| shoal_fib::api::retval(&e);
        let (mut walk, pace) = (self.fib.walk(self.family, self.index).map_err(failed)?, Pace::default());
        while walk.goes_on() {
            act(&self.fib, &mut walk).map_err(failed)?;
            pace.give_way().await;
        }
        Ok(())
    }
}

impl Task for IpTableReplaceBegin {
    fn run(self, call: Call) -> impl Future<Output = Result<(), Retval>> + 'static {
        async move {
            let all = Tables::of(&call, &self.table)?;
            all.mfib.replace_begin(all.family, all.index);
            all.each(|fib, walk| {
                fib.mark(walk);
                Ok(())
            })
            .await
        }
    }
}

impl Task for IpTableReplaceEnd {
    fn run(self, call: Call) -> impl Future<Output = Result<(), Retval>> + 'static {
        async move {
            let all = Tables::of(&call, &self.table)?;
            all.mfib.replace_end(all.family, all.index).map_err(|e| super::retval(&e))?;
            all.each(|fib, walk| fib.sweep(walk, Sweep::Marked)).await
        }
    }
}

impl Task for IpTableFlush {
    fn run(self, call: Call) -> impl Future<Output = Result<(), Retval>> + 'static {
        async move {
            let all = Tables::of(&call, &self.table)?;
            all.mfib.flush(all.family, all.index).map_err(|e| super::retval(&e))?;
            all.each(|fib, walk| fib.sweep(walk, Sweep::All)).await
        }
    }
}
