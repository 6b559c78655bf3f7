#include "cli/page.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"

namespace rose::cli {

report::PageContext page_context(std::vector<std::string> nodes) {
  report::PageContext context;
  context.nonce = report::fresh_nonce();
  context.nodes = std::move(nodes);
  context.environment.emplace_back("Made", wall_clock(wall_ns()).substr(0, 19) + " UTC");
  context.environment.emplace_back("By", std::string("rose ") + ROSE_VERSION);
  utsname machine{};
  if (::uname(&machine) == 0)
    context.environment.emplace_back(
        "Machine", fmt::format("{}, {} {} ({}), {} processors", machine.nodename, machine.sysname, machine.release,
                               machine.machine, ::sysconf(_SC_NPROCESSORS_ONLN)));
  return context;
}

void add_deployment(report::PageContext& context, const config::Config& config, const std::string& file) {
  context.environment.emplace_back("Configuration", file);
  context.environment.emplace_back("Deployment",
                                   fmt::format("{}: {} node{}, network = \"{}\"", config.name, config.nodes.size(),
                                               config.nodes.size() == 1 ? "" : "s",
                                               config.deployment.network == config::Network::netns ? "netns" : "host"));
}

}  // namespace rose::cli
