//! `sw_interface_set_interface_name`, `interface_name_renumber`, `sw_interface_tag_add_del`.

use shoal_message::{InterfaceIndex, Message, Retval, Text};
use shoal_module::api::{Call, Request};

use super::interfaces;
use crate::{InterfaceError, SwIfIndex};

/// Notes a word on an interface, or forgets it.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceTagAddDel {
    /// Whether it is noted.
    pub is_add: bool,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The word.
    pub tag: Text<64>,
}

impl Request for SwInterfaceTagAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let interfaces = interfaces(call)?;
        let index = SwIfIndex(self.sw_if_index.0);
        interfaces.data(index)?;
        let tag = if self.is_add { self.tag.as_str() } else { "" };
        if self.is_add && tag.is_empty() {
            return Err(Retval::INVALID_VALUE);
        }
        Ok(interfaces.set_tag(index, tag)?)
    }
}

/// Renames an interface.
#[derive(Message)]
#[message(request)]
pub struct SwInterfaceSetInterfaceName {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Its new name: no blanks.
    pub name: Text<64>,
}

impl Request for SwInterfaceSetInterfaceName {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let renamed = interfaces(call)?.rename(SwIfIndex(self.sw_if_index.0), self.name.as_str());
        renamed.map_err(|e| match e {
            InterfaceError::NotPossible(..) => Retval::INVALID_VALUE,
            e => e.into(),
        })
    }
}

/// Gives an interface whose name ends with a number another number.
#[derive(Message)]
#[message(request)]
pub struct InterfaceNameRenumber {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Its new number.
    pub new_show_dev_instance: u32,
}

impl Request for InterfaceNameRenumber {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let number = self.new_show_dev_instance;
        Ok(interfaces(call)?.renumber(SwIfIndex(self.sw_if_index.0), number)?)
    }
}
