//! `ip_mtable_dump`: the tables of multicast routes, one for each table of routes.

use shoal_adj::Family;
use shoal_fib::Fib;
use shoal_fib::api::IpTable;
use shoal_message::{Field, Header, Input, Malformed, Message, Service, Shape, Value};
use shoal_module::api::{Call, Dump};

/// Asks for all tables of multicast routes.
#[derive(Message)]
#[message(request, details = IpMtableDetails)]
pub struct IpMtableDump {}

/// A table of multicast routes. VPP declares it as if a client sent it: with a client's number in front, which is 0.
pub struct IpMtableDetails {
    /// Its number and name.
    pub table: IpTable,
}

impl Message for IpMtableDetails {
    const NAME: &'static str = "ip_mtable_details";
    const DOC: &'static str = "A table of multicast routes";
    const HEADER: Header = Header::Request;
    const FIELDS: &'static [Field] = &[Field {
        name: "table",
        doc: "Its number and name",
        of: IpTable::TYPE,
        shape: Shape::One,
        default: None,
    }];
    const SERVICE: Option<Service> = None;
    const LEAST: usize = IpTable::LEAST;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(IpMtableDetails { table: IpTable::decode(input)? })
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.table.encode(to);
    }
}

impl Dump for IpMtableDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpMtableDetails> + 'static {
        let fib = call.get::<Fib>().ok();
        let all = fib.iter().flat_map(|fib| Family::ALL.map(|family| (family, fib.ids(family))));
        let ids: Vec<(Family, u32)> =
            all.flat_map(|(family, ids)| ids.into_iter().map(move |id| (family, id))).collect();
        ids.into_iter().filter_map(move |(family, table_id)| {
            let name = fib.as_ref()?.name_of(family, table_id)?;
            let table = IpTable { table_id, is_ip6: family == Family::Ip6, name: name.as_str().into() };
            Some(IpMtableDetails { table })
        })
    }
}
