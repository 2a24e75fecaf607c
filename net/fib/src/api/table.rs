//! `ip_table_*`: tables come, go, and are listed.

use shoal_adj::Family;
use shoal_message::{Message, Retval, Text, Value};
use shoal_module::api::{Call, Dump, Request};

use super::{family_if, retval};
use crate::Fib;

/// A forwarding table.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct IpTable {
    /// Its number, as operators say it.
    pub table_id: u32,
    /// Whether it is one of IPv6.
    pub is_ip6: bool,
    /// Its name, if it is to have one of its own.
    pub name: Text<64>,
}

impl IpTable {
    /// Its family.
    pub fn family(&self) -> Family {
        family_if(self.is_ip6)
    }

    fn own_name(&self) -> Result<Option<&str>, Retval> {
        let name = self.name.as_str();
        if name.chars().any(char::is_control) {
            return Err(Retval::ILLEGAL_NAME);
        }
        Ok((!name.is_empty()).then_some(name))
    }
}

/// Adds a table, or releases it. It goes when the last interface has left it, its routes from the API at once.
#[derive(Message)]
#[message(request)]
pub struct IpTableAddDel {
    /// Whether it is added.
    #[preset("true")]
    pub is_add: bool,
    /// Which.
    pub table: IpTable,
}

/// The same; the table of multicast routes comes and goes with the other one.
#[derive(Message)]
#[message(request, name = "ip_table_add_del_v2")]
pub struct IpTableAddDelV2 {
    /// Which.
    pub table: IpTable,
    /// Makes no difference.
    #[preset("true")]
    pub create_mfib: bool,
    /// Whether it is added.
    #[preset("true")]
    pub is_add: bool,
}

/// Adds a table whose number does not matter.
#[derive(Message)]
#[message(request, reply = IpTableAllocateReply)]
pub struct IpTableAllocate {
    /// Its number; all bits set for any that is free.
    pub table: IpTable,
}

/// The table that was added.
#[derive(Message)]
#[message(reply)]
pub struct IpTableAllocateReply {
    pub retval: i32,
    /// With its number.
    pub table: IpTable,
}

/// Asks for all tables.
#[derive(Message)]
#[message(request, details = IpTableDetails)]
pub struct IpTableDump {}

/// A table.
#[derive(Message)]
#[message(reply)]
pub struct IpTableDetails {
    /// Its number and name.
    pub table: IpTable,
}

pub(super) fn tables(call: &Call) -> Result<std::rc::Rc<Fib>, Retval> {
    call.get::<Fib>().map_err(|_| Retval::UNSPECIFIED)
}

fn add_del(call: &Call, table: &IpTable, is_add: bool) -> Result<(), Retval> {
    let (fib, family) = (tables(call)?, table.family());
    if is_add {
        return fib.want_table(family, table.table_id, table.own_name()?).map(drop).map_err(|e| retval(&e));
    }
    // VPP has nothing to say of one that is not there.
    if fib.index_of(family, table.table_id).is_err() {
        return Ok(());
    }
    fib.unwant_table(family, table.table_id).map_err(|e| retval(&e))
}

impl Request for IpTableAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        add_del(call, &self.table, self.is_add)
    }
}

impl Request for IpTableAddDelV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        add_del(call, &self.table, self.is_add)
    }
}

impl Request for IpTableAllocate {
    fn handle(self, call: &Call) -> Result<IpTableAllocateReply, Retval> {
        let mut table = self.table;
        if table.table_id == u32::MAX {
            table.table_id = tables(call)?.unused_id(table.family());
        }
        add_del(call, &table, true)?;
        Ok(IpTableAllocateReply { retval: 0, table })
    }
}

impl Dump for IpTableDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpTableDetails> + 'static {
        let fib = call.get::<Fib>().ok();
        if let Some(fib) = &fib {
            fib.forget_unwanted();
        }
        let ids = Family::ALL.into_iter().flat_map({
            let fib = fib.clone();
            move |family| {
                let ids = fib.iter().flat_map(|fib| fib.ids(family)).collect::<Vec<u32>>();
                ids.into_iter().map(move |id| (family, id))
            }
        });
        ids.filter_map(move |(family, table_id)| {
            let name = fib.as_ref()?.name_of(family, table_id)?;
            let table = IpTable { table_id, is_ip6: family == Family::Ip6, name: name.as_str().into() };
            Some(IpTableDetails { table })
        })
    }
}
