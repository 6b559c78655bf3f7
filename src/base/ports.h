// The port from which Linux chooses the ports of clients by default (net.ipv4.ip_local_port_range).
#pragma once

namespace rose {

inline constexpr int kFirstClientPort = 32768;

}  // namespace rose
