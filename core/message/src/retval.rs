//! The numbers with which requests are answered: VPP's, exactly.

use std::fmt;

/// Why a request was not done: a number below 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retval(pub i32);

macro_rules! retvals {
    ($($name:ident = $value:literal,)*) => {
        #[allow(missing_docs, reason = "VPP's names, which say what there is to say")]
        impl Retval {
            $(pub const $name: Retval = Retval($value);)*
        }

        const NAMES: &[(i32, &str)] = &[$(($value, stringify!($name))),*];
    };
}

retvals! {
    UNSPECIFIED = -1,
    INVALID_SW_IF_INDEX = -2,
    NO_SUCH_FIB = -3,
    NO_SUCH_INNER_FIB = -4,
    NO_SUCH_LABEL = -5,
    NO_SUCH_ENTRY = -6,
    INVALID_VALUE = -7,
    INVALID_VALUE_2 = -8,
    UNIMPLEMENTED = -9,
    INVALID_SW_IF_INDEX_2 = -10,
    SYSCALL_ERROR_1 = -11,
    SYSCALL_ERROR_2 = -12,
    SYSCALL_ERROR_3 = -13,
    SYSCALL_ERROR_4 = -14,
    SYSCALL_ERROR_5 = -15,
    SYSCALL_ERROR_6 = -16,
    SYSCALL_ERROR_7 = -17,
    SYSCALL_ERROR_8 = -18,
    SYSCALL_ERROR_9 = -19,
    SYSCALL_ERROR_10 = -20,
    FEATURE_DISABLED = -30,
    INVALID_REGISTRATION = -31,
    NEXT_HOP_NOT_IN_FIB = -50,
    UNKNOWN_DESTINATION = -51,
    NO_PATHS_IN_ROUTE = -52,
    NEXT_HOP_NOT_FOUND_MP = -53,
    NO_MATCHING_INTERFACE = -54,
    INVALID_VLAN = -55,
    VLAN_ALREADY_EXISTS = -56,
    INVALID_SRC_ADDRESS = -57,
    INVALID_DST_ADDRESS = -58,
    ADDRESS_LENGTH_MISMATCH = -59,
    ADDRESS_NOT_FOUND_FOR_INTERFACE = -60,
    ADDRESS_NOT_DELETABLE = -61,
    IP6_NOT_ENABLED = -62,
    NO_SUCH_NODE = -63,
    NO_SUCH_NODE2 = -64,
    NO_SUCH_TABLE = -65,
    NO_SUCH_TABLE2 = -66,
    NO_SUCH_TABLE3 = -67,
    SUBIF_ALREADY_EXISTS = -68,
    SUBIF_CREATE_FAILED = -69,
    INVALID_MEMORY_SIZE = -70,
    INVALID_INTERFACE = -71,
    INVALID_VLAN_TAG_COUNT = -72,
    INVALID_ARGUMENT = -73,
    UNEXPECTED_INTF_STATE = -74,
    TUNNEL_EXIST = -75,
    INVALID_DECAP_NEXT = -76,
    RESPONSE_NOT_READY = -77,
    NOT_CONNECTED = -78,
    IF_ALREADY_EXISTS = -79,
    BOND_SLAVE_NOT_ALLOWED = -80,
    VALUE_EXIST = -81,
    SAME_SRC_DST = -82,
    IP6_MULTICAST_ADDRESS_NOT_PRESENT = -83,
    SR_POLICY_NAME_NOT_PRESENT = -84,
    NOT_RUNNING_AS_ROOT = -85,
    ALREADY_CONNECTED = -86,
    UNSUPPORTED_JNI_VERSION = -87,
    IP_PREFIX_INVALID = -88,
    INVALID_WORKER = -89,
    LISP_DISABLED = -90,
    CLASSIFY_TABLE_NOT_FOUND = -91,
    INVALID_EID_TYPE = -92,
    CANNOT_CREATE_PCAP_FILE = -93,
    INCORRECT_ADJACENCY_TYPE = -94,
    EXCEEDED_NUMBER_OF_RANGES_CAPACITY = -95,
    EXCEEDED_NUMBER_OF_PORTS_CAPACITY = -96,
    INVALID_ADDRESS_FAMILY = -97,
    INVALID_SUB_SW_IF_INDEX = -98,
    TABLE_TOO_BIG = -99,
    CANNOT_ENABLE_DISABLE_FEATURE = -100,
    BFD_EEXIST = -101,
    BFD_ENOENT = -102,
    BFD_EINUSE = -103,
    BFD_NOTSUPP = -104,
    ADDRESS_IN_USE = -105,
    ADDRESS_NOT_IN_USE = -106,
    QUEUE_FULL = -107,
    APP_UNSUPPORTED_CFG = -108,
    URI_FIFO_CREATE_FAILED = -109,
    LISP_RLOC_LOCAL = -110,
    BFD_EAGAIN = -111,
    INVALID_GPE_MODE = -112,
    LISP_GPE_ENTRIES_PRESENT = -113,
    ADDRESS_FOUND_FOR_INTERFACE = -114,
    SESSION_CONNECT = -115,
    ENTRY_ALREADY_EXISTS = -116,
    SVM_SEGMENT_CREATE_FAIL = -117,
    APPLICATION_NOT_ATTACHED = -118,
    BD_ALREADY_EXISTS = -119,
    BD_IN_USE = -120,
    BD_NOT_MODIFIABLE = -121,
    BD_ID_EXCEED_MAX = -122,
    SUBIF_DOESNT_EXIST = -123,
    L2_MACS_EVENT_CLINET_PRESENT = -124,
    INVALID_QUEUE = -125,
    UNSUPPORTED = -126,
    DUPLICATE_IF_ADDRESS = -127,
    APP_INVALID_NS = -128,
    APP_WRONG_NS_SECRET = -129,
    APP_CONNECT_SCOPE = -130,
    APP_ALREADY_ATTACHED = -131,
    SESSION_REDIRECT = -132,
    ILLEGAL_NAME = -133,
    NO_NAME_SERVERS = -134,
    NAME_SERVER_NOT_FOUND = -135,
    NAME_RESOLUTION_NOT_ENABLED = -136,
    NAME_SERVER_FORMAT_ERROR = -137,
    NAME_SERVER_NO_SUCH_NAME = -138,
    NAME_SERVER_NO_ADDRESSES = -139,
    NAME_SERVER_NEXT_SERVER = -140,
    APP_CONNECT_FILTERED = -141,
    ACL_IN_USE_INBOUND = -142,
    ACL_IN_USE_OUTBOUND = -143,
    INIT_FAILED = -144,
    NETLINK_ERROR = -145,
    BIER_BSL_UNSUP = -146,
    INSTANCE_IN_USE = -147,
    INVALID_SESSION_ID = -148,
    ACL_IN_USE_BY_LOOKUP_CONTEXT = -149,
    INVALID_VALUE_3 = -150,
    NON_ETHERNET = -151,
    BD_ALREADY_HAS_BVI = -152,
    INVALID_PROTOCOL = -153,
    INVALID_ALGORITHM = -154,
    RSRC_IN_USE = -155,
    KEY_LENGTH = -156,
    FIB_PATH_UNSUPPORTED_NH_PROTO = -157,
    API_ENDIAN_FAILED = -159,
    NO_CHANGE = -160,
    MISSING_CERT_KEY = -161,
    LIMIT_EXCEEDED = -162,
    IKE_NO_PORT = -163,
    UDP_PORT_TAKEN = -164,
    EAGAIN = -165,
    INVALID_VALUE_4 = -166,
    BUSY = -167,
    BUG = -168,
    FEATURE_ALREADY_DISABLED = -169,
    FEATURE_ALREADY_ENABLED = -170,
    INVALID_PREFIX_LENGTH = -171,
}

impl Retval {
    /// Its name, if VPP has one for it.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(value, _)| *value == self.0).map(|(_, name)| *name)
    }
}

impl fmt::Display for Retval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Retval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_name_each() {
        let mut values: Vec<i32> = NAMES.iter().map(|(value, _)| *value).collect();
        let all = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), all);
        assert_eq!(Retval::INVALID_SW_IF_INDEX.to_string(), "INVALID_SW_IF_INDEX (-2)");
        assert_eq!(Retval(-9999).to_string(), "-9999");
    }
}
