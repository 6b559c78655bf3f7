#include "draft/systems.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/result.h"
#include "base/text.h"
#include "base/toml.h"
#include "draft/container.h"

namespace rose::draft {
namespace {

std::string file_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// The program's name, also if a title has replaced the command line: "redis-server" for "redis-server *:6379".
std::string program_name(const Seen& seen) {
  const Process& process = seen.program ? *seen.program : seen.main;
  const std::string first = process.argv.empty() ? "" : process.argv.front();
  const std::string word = first.substr(0, first.find_first_of(" :"));
  return file_name(word.empty() ? process.exe : word);
}

// The address that an example uses for the node. Inside a container this is the loopback address.
std::string address_of(const NodeDraft& node) {
  return node.run_in.empty() ? "$ROSE_IP_" + node.variable : "127.0.0.1";
}

std::uint16_t lowest_port(const Seen& seen) { return seen.tcp.empty() ? 0 : seen.tcp.front().port; }

bool writes_below(const Seen& seen, std::string_view part) {
  return std::any_of(seen.written.begin(), seen.written.end(),
                     [&](const std::string& path) { return path.find(part) != std::string::npos; });
}

// Redis and its forks.
class Redis : public System {
 public:
  std::string_view name() const override { return "redis"; }
  std::string_view title() const override { return "Redis"; }
  std::uint16_t usual_port() const override { return 6379; }
  bool is(std::string_view program) const override {
    return program == "redis-server" || program == "valkey-server" || program == "keydb-server";
  }

  std::optional<std::vector<std::string>> recover(Making& making) const override {
    const Seen& seen = making.seen();
    const std::string& title = seen.main.argv.front();
    if (title.find("[sentinel]") != std::string::npos) {
      making.node.question =
          "a Sentinel keeps its state in its configuration file, and its command line does not show which: copy the "
          "file beside this one and set the nodes' addresses in it";
      return std::nullopt;
    }
    const std::uint16_t port = client_port(seen);
    std::vector<std::string> words = {title.substr(0, title.find(' ')), "--port", std::to_string(port)};
    if (title.find("[cluster]") != std::string::npos) words.insert(words.end(), {"--cluster-enabled", "yes"});
    if (writes_below(seen, ".aof")) words.insert(words.end(), {"--appendonly", "yes"});
    making.node.doubts.push_back(fmt::format(
        "it replaced its command line by \"{}\", so 'command' is reconstructed from its behaviour. Its other settings "
        "cannot be seen. 'redis-cli -p {} info server' shows its configuration file: add its path after the program",
        title, port));
    return words;
  }

  void adapt(Making& making) const override {
    const Seen& seen = making.seen();
    Words& words = making.words;
    const bool file = words.size() > 1 && !words[1].text.starts_with('-');
    // In a run, the server must stay in the foreground, write only to its folder, and be reachable at its address.
    for (const char* option :
         {"--daemonize", "--pidfile", "--logfile", "--supervised", "--unixsocket", "--unixsocketperm"})
      words.drop({option}, 1);
    words.drop({"--bind"}, 16);
    words.drop({"--protected-mode"}, 1);
    words.drop({"--dir"}, 1);
    for (const char* word : {"--bind", "${ip}", "--protected-mode", "no", "--dir", "${dir}"}) words.append(word);
    making.node.password = words.value({"--requirepass"});
    if (!making.node.password.empty()) making.node.password = shell_word(making.node.password);
    for (const Settings& settings : seen.settings)
      for (const std::string& key : settings.secrets) {
        if ((key != "requirepass" && key != "masterauth") || words.has({"--" + key})) continue;
        words.append("--" + key);
        words.append("");
        making.node.changes.push_back(
            fmt::format("--{} \"\": {} sets a password, but in a run there is none", key, settings.path));
      }
    if (file)
      for (const char* word :
           {"--daemonize", "no", "--supervised", "no", "--pidfile", "", "--logfile", "", "--unixsocket", ""})
        words.append(word);
    making.node.changes.push_back(fmt::format(
        "--bind, --dir{}: so it is reachable at its address, starts with an empty folder, and writes nowhere else{}",
        file ? ", --daemonize, --logfile, ..." : "",
        seen.main.cwd.empty() ? "" : fmt::format(" (it runs in {})", seen.main.cwd)));
    const std::uint16_t port = client_port(seen);
    making.node.port = port;
    making.places_known = true;
    making.reachable = true;

    // Determines which node it is a replica of.
    const bool is_replica = words.has({"--replicaof", "--slaveof"});
    for (const Remote& remote : seen.remotes) {
      const auto other = making.book.owner(making.self, remote.address, remote.port);
      if (!other || *other == making.self || making.systems[*other] != this ||
          client_port(making.all[*other]) != remote.port)
        continue;
      making.node.follows = true;
      if (is_replica) break;
      for (const std::string& word :
           {std::string("--replicaof"), making.book.placeholder(making.self, *other), std::to_string(remote.port)})
        words.append(word);
      making.node.changes.push_back(fmt::format("--replicaof: added, because it holds a connection to port {} of {}",
                                                remote.port, making.book.name(*other)));
      break;
    }
    making.node.follows = making.node.follows || is_replica;
    if (making.node.follows) {
      if (making.host.has("redis-cli"))
        making.node.ready = fmt::format(
            "{{ command = [\"sh\", \"-c\", {}], timeout = \"30s\" }}",
            toml::literal(fmt::format(
                "{}redis-cli -h ${{ip}} -p {} info replication | grep -q master_link_status:up",
                making.node.password.empty() ? "" : fmt::format("REDISCLI_AUTH={} ", making.node.password), port)));
    } else if (making.all.size() > 1 && !words.has({"--repl-diskless-sync-delay"})) {
      words.append("--repl-diskless-sync-delay");
      words.append("0");
      making.node.changes.push_back(
          "--repl-diskless-sync-delay 0: replicas get their copy immediately instead of 5 seconds after the start of "
          "each run");
    }
  }

  Example example(const NodeDraft& node) const override {
    const std::string cli = fmt::format("{}redis-cli -h {} -p {}", node.run_in, address_of(node), node.port);
    const std::string login = node.password.empty() ? "" : fmt::format("export REDISCLI_AUTH={}\n", node.password);
    return {login + fmt::format("for i in $(seq 200); do\n"
                                "  {} set key:$i $i | grep -q OK && echo $i >> acknowledged\n"
                                "  sleep 0.02\n"
                                "done\n",
                                cli),
            login + fmt::format("test \"$({} dbsize)\" -lt \"$(wc -l < acknowledged)\"\n", cli),
            "fewer keys are there than were acknowledged", "redis-cli"};
  }

 private:
  static std::uint16_t client_port(const Seen& seen) {
    // Redis's cluster bus listens at a port that is 10000 higher, so the lowest port is that for clients.
    return lowest_port(seen);
  }
};

class Postgres : public System {
 public:
  std::string_view name() const override { return "postgres"; }
  std::string_view title() const override { return "PostgreSQL"; }
  std::uint16_t usual_port() const override { return 5432; }
  bool is(std::string_view program) const override { return program == "postgres" || program == "postmaster"; }
  std::vector<std::string> password_variables() const override { return {"POSTGRES_PASSWORD"}; }

  void adapt(Making& making) const override {
    Words& words = making.words;
    const bool file =
        std::any_of(making.seen().main.argv.begin(), making.seen().main.argv.end(),
                    [](const std::string& word) { return word.find("config_file=") != std::string::npos; });
    words.drop({"-D"}, 1);
    words.drop({"--data-directory"}, 1);
    words.drop({"-k"}, 1);
    words.drop({"-h"}, 1);
    for (const char* word : {"-D", "${dir}/data", "-k", "${dir}", "-h", "${ip}"}) words.append(word);
    if (file)
      for (const char* setting : {"data_directory=${dir}/data", "hba_file=${dir}/data/pg_hba.conf",
                                  "ident_file=${dir}/data/pg_ident.conf", "external_pid_file="}) {
        words.append("-c");
        words.append(setting);
      }
    making.node.port = lowest_port(making.seen());
    if (making.node.port != 0 && making.node.port != 5432 && !words.has({"-p", "--port"})) {
      words.append("-p");
      words.append(std::to_string(making.node.port));
    }
    making.places_known = true;
    making.reachable = true;
    making.node.changes.push_back(
        "-D, -k, -h, and options for the files that a configuration file names: the shell creates an empty database "
        "(initdb) in the run's folder, and this database trusts its whole network");
    for (const Remote& remote : making.seen().remotes)
      if (const auto other = making.book.owner(making.self, remote.address, remote.port);
          other && *other != making.self && making.systems[*other] == this)
        making.node.doubts.push_back(
            fmt::format("it holds a connection to {}: a standby starts with pg_basebackup instead of initdb",
                        making.book.name(*other)));
  }

  void finish(Making& making) const override {
    const std::string program = making.words[0].text;
    const std::string initdb = program.substr(0, program.rfind('/') + 1) + "initdb";
    // The node's command also restarts the server after a crash, so it initialises the data only the first time.
    making.words.prepend({"sh", "-ec",
                          "if [ ! -e data/PG_VERSION ]; then\n  \"$0\" -D data -U postgres --auth=trust > initdb.log\n"
                          "  echo \"host all all all trust\" >> data/pg_hba.conf\nfi\nexec \"$@\"",
                          initdb});
    making.node.binary = program;
  }

  Example example(const NodeDraft& node) const override {
    const std::string psql =
        fmt::format("{}psql -h {} -p {} -U postgres -qAt", node.run_in, address_of(node), node.port);
    const std::string login = node.password.empty() ? "" : fmt::format("export PGPASSWORD={}\n", node.password);
    return {
        fmt::format("{1}{0} -c \"create table rose (i int)\" || exit 1\n"
                    "for i in $(seq 100); do\n"
                    "  {0} -c \"insert into rose values ($i)\" && echo $i >> acknowledged\n"
                    "done\n",
                    psql, login),
        fmt::format("{}test \"$({} -c 'select count(*) from rose')\" -lt \"$(wc -l < acknowledged)\"\n", login, psql),
        "fewer rows are there than were acknowledged", "psql"};
  }
};

class Mariadb : public System {
 public:
  std::string_view name() const override { return "mariadb"; }
  std::string_view title() const override { return "MariaDB"; }
  std::uint16_t usual_port() const override { return 3306; }
  bool is(std::string_view program) const override { return program == "mariadbd"; }
  std::vector<std::string> password_variables() const override {
    return {"MARIADB_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD"};
  }

  void adapt(Making& making) const override {
    Words& words = making.words;
    const std::string port = making.seen().tcp.empty() ? "" : std::to_string(lowest_port(making.seen()));
    for (const char* option : {"datadir", "socket", "pid-file", "log-error", "bind-address", "tmpdir"})
      words.drop({fmt::format("--{}", option), fmt::format("--{}", replaced(option, "-", "_"))}, 1);
    words.drop({"-h", "-S", "-t"}, 1);
    for (const char* word : {"--datadir=${dir}/data", "--socket=${dir}/mariadbd.sock", "--pid-file=${dir}/mariadbd.pid",
                             "--skip-log-error", "--bind-address=${ip}"})
      words.append(word);
    making.node.port = lowest_port(making.seen());
    if (making.node.port != 0 && making.node.port != usual_port() && !words.has({"-P", "--port"}))
      words.append("--port=" + port);
    // At these addresses of Galera, the node listens only while it receives data from another node, so they were not
    // observed.
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::string text = words[i].text;
      for (const char* key : {"ist.recv_addr=", "--wsrep-sst-receive-address=", "--wsrep_sst_receive_address="}) {
        const std::size_t at = text.find(key);
        if (at == std::string::npos) continue;
        const std::size_t begin = at + std::string_view(key).size();
        const std::size_t end = std::min({text.find(';', begin), text.find(':', begin), text.size()});
        text.replace(begin, end - begin, "${ip}");
      }
      if (text != words[i].text) words.set(i, std::move(text), false);
    }
    making.places_known = true;
    making.reachable = true;
    making.node.changes.push_back(
        "--datadir, --socket, --pid-file, --bind-address: the shell creates an empty database (mariadb-install-db) in "
        "the run's folder, where root needs no password; messages go to stderr.log");
  }

  void finish(Making& making) const override {
    const std::string program = making.words[0].text;
    const std::string folder = program.substr(0, program.rfind('/') + 1);
    std::string options;
    if (making.words.has({"--no-defaults"})) options += " --no-defaults";
    if (const std::string file = making.words.value({"--defaults-file"}); !file.empty())
      options += " --defaults-file=" + shell_word(file);
    if (const std::string base = making.words.value({"--basedir"}); !base.empty())
      options += " --basedir=" + shell_word(base);
    if (const std::string user = making.words.value({"--user"}); !user.empty())
      options += " --user=" + shell_word(user);
    // The node's command also restarts the server after a crash, so it initialises the data only the first time.
    making.words.prepend(
        {"sh", "-ec",
         fmt::format("export TMPDIR=$PWD  # each server removes what others keep in a shared one\n"
                     "if [ ! -d data/mysql ]; then\n"
                     "  {{ echo \"flush privileges;\"  # so that the next statements are possible; one a line\n"
                     "    echo \"create user root@'%';\"\n"
                     "    echo \"grant all on *.* to root@'%' with grant option;\"; }} > users.sql\n"
                     "  PATH=$PATH:$0:$${{0%/*/}}/bin\n"
                     "  mariadb-install-db{} --datadir=\"$PWD/data\" --auth-root-authentication-method=normal \\\n"
                     "    --skip-test-db --extra-file=\"$PWD/users.sql\" > install.log 2>&1 ||\n"
                     "    {{ cat install.log >&2; exit 1; }}\nfi\nexec \"$@\"",
                     options),
         folder});
    making.node.binary = program;
  }

  Example example(const NodeDraft& node) const override {
    const std::string client =
        fmt::format("{}mariadb -h {} -P {} -u root -N -B", node.run_in, address_of(node), node.port);
    const std::string login = node.password.empty() ? "" : fmt::format("export MYSQL_PWD={}\n", node.password);
    return {fmt::format("{1}{0} -e \"create database rose; create table rose.t (i int primary key)\" || exit 1\n"
                        "for i in $(seq 100); do\n"
                        "  {0} -e \"insert into rose.t values ($i)\" && echo $i >> acknowledged\n"
                        "done\n",
                        client, login),
            fmt::format("{}test \"$({} -e 'select count(*) from rose.t')\" -lt \"$(wc -l < acknowledged)\"\n", login,
                        client),
            "fewer rows are there than were acknowledged", "mariadb"};
  }
};

class Nginx : public System {
 public:
  std::string_view name() const override { return "nginx"; }
  std::string_view title() const override { return "nginx"; }
  std::uint16_t usual_port() const override { return 80; }
  std::string_view usual_settings() const override { return "/etc/nginx/nginx.conf"; }
  bool is(std::string_view program) const override { return program == "nginx"; }

  // The title, such as "nginx: master process /usr/sbin/nginx -g daemon on; -c /x", shows the words without their
  // quotes.
  std::optional<std::vector<std::string>> recover(Making& making) const override {
    constexpr std::string_view kMaster = "master process ";
    const std::string& title = making.seen().main.argv.front();
    const std::size_t at = title.find(kMaster);
    if (at == std::string::npos) {
      making.node.question = fmt::format("it replaced its command line by \"{}\"", title);
      return std::nullopt;
    }
    std::vector<std::string> words;
    for (const std::string& word : split(title.substr(at + kMaster.size()), ' ')) {
      const bool option = word.size() == 2 && word[0] == '-';
      // The directives after -g may contain spaces. They end where the next option begins.
      const bool inside = words.size() >= 3 && words[words.size() - 2] == "-g" && !option;
      if (inside) words.back() += " " + word;
      else if (!word.empty()) words.push_back(word);
    }
    return words;
  }

  void adapt(Making& making) const override {
    Words& words = making.words;
    const std::string directives = words.value({"-g"});
    std::string kept;
    for (const std::string& directive : split(directives, ';')) {
      const std::size_t begin = directive.find_first_not_of(' ');
      if (begin == std::string::npos) continue;
      const std::string one = directive.substr(begin);
      if (!one.starts_with("daemon ")) kept += one + "; ";
    }
    words.put({"-g"}, "-g", kept + "daemon off;");
    making.node.changes.push_back("-g \"daemon off;\": so it stays in the foreground");
    making.node.port = lowest_port(making.seen());
  }

  Example example(const NodeDraft& node) const override {
    return {fmt::format("for i in $(seq 200); do\n"
                        "  {}curl -sS -f -o /dev/null -m 5 http://{}:{}/ || echo $i >> failures\n"
                        "  sleep 0.02\n"
                        "done\n",
                        node.run_in, address_of(node), node.port),
            "test -s failures\n", "a request failed", "curl"};
  }
};

class Etcd : public System {
 public:
  std::string_view name() const override { return "etcd"; }
  std::string_view title() const override { return "etcd"; }
  std::uint16_t usual_port() const override { return 2379; }
  bool is(std::string_view program) const override { return program == "etcd"; }

  void adapt(Making& making) const override {
    Words& words = making.words;
    const auto set = [&](const char* variable) {
      return std::any_of(making.seen().main.env.begin(), making.seen().main.env.end(),
                         [&](const auto& each) { return each.first == variable; });
    };
    // Options take precedence over variables.
    if (!words.has({"--data-dir", "-data-dir"}) && !set("ETCD_DATA_DIR")) {
      words.append("--data-dir=${dir}/data");
      making.node.changes.push_back("--data-dir: it had no such option and created a folder where it ran");
    }
    const bool client = words.has({"--listen-client-urls", "-listen-client-urls"}) || set("ETCD_LISTEN_CLIENT_URLS");
    const bool config = words.has({"--config-file", "-config-file"}) || set("ETCD_CONFIG_FILE");
    if (!client && !config) {
      words.append("--listen-client-urls=http://${ip}:2379");
      words.append("--advertise-client-urls=http://${ip}:2379");
      making.node.changes.push_back(
          "--listen-client-urls, --advertise-client-urls: added, because by default it listens at localhost only");
      making.reachable = true;
    }
    making.node.port = lowest_port(making.seen());
  }

  Example example(const NodeDraft& node) const override {
    const std::string ctl =
        fmt::format("{}env ETCDCTL_API=3 etcdctl --endpoints=http://{}:{}", node.run_in, address_of(node), node.port);
    return {fmt::format("for i in $(seq 200); do\n"
                        "  {} put key:$i $i > put.out 2>&1 && echo $i >> acknowledged\n"
                        "done\n",
                        ctl),
            fmt::format("keys=$({} get key: --prefix --keys-only) || exit 2\n"
                        "test \"$(echo \"$keys\" | grep -c key:)\" -lt \"$(wc -l < acknowledged)\"\n",
                        ctl),
            "fewer keys are there than were acknowledged", "etcdctl"};
  }
};

class Memcached : public System {
 public:
  std::string_view name() const override { return "memcached"; }
  std::string_view title() const override { return "memcached"; }
  std::uint16_t usual_port() const override { return 11211; }
  bool is(std::string_view program) const override { return program == "memcached"; }

  void adapt(Making& making) const override {
    Words& words = making.words;
    words.drop({"-d", "--daemon"}, 0);
    words.drop({"-P", "--pidfile"}, 1);
    words.drop({"-l", "--listen"}, 1);
    words.append("-l");
    words.append("${ip}");
    making.node.changes.push_back(
        "-l: so it is reachable at its address; -d, -P: left out, so that it stays in the foreground without a pid "
        "file");
    making.node.port = lowest_port(making.seen());
    making.reachable = true;
    // If root starts it, memcached requires -u with the user as which it shall run.
    if (making.node.user.empty() && !words.has({"-u", "--user"})) {
      words.append("-u");
      words.append("root");
    }
  }

  Example example(const NodeDraft& node) const override {
    return {fmt::format("exec {}bash -c 'exec 3<>/dev/tcp/{}/{} || exit 1\n"
                        "for i in $(seq 200); do\n"
                        "  printf \"set key:$i 0 0 2\\r\\nok\\r\\n\" >&3\n"
                        "  read -r -t 5 answer <&3 && echo $i >> acknowledged || echo $i >> failures\n"
                        "  sleep 0.02\n"
                        "done'\n",
                        node.run_in, address_of(node), node.port),
            "test -s failures\n", "a request got no answer", "bash"};
  }
};

class Mosquitto : public System {
 public:
  std::string_view name() const override { return "mosquitto"; }
  std::string_view title() const override { return "Mosquitto"; }
  std::uint16_t usual_port() const override { return 1883; }
  bool is(std::string_view program) const override { return program == "mosquitto"; }

  void adapt(Making& making) const override {
    making.words.drop({"-d", "--daemon"}, 0);
    making.node.port = lowest_port(making.seen());
  }

  Example example(const NodeDraft& node) const override {
    return {fmt::format("for i in $(seq 100); do\n"
                        "  {}mosquitto_pub -h {} -p {} -q 1 -t rose -m $i || echo $i >> failures\n"
                        "done\n",
                        node.run_in, address_of(node), node.port),
            "test -s failures\n", "a message was not acknowledged", "mosquitto_pub"};
  }
};

const std::array<const System*, 7>& all_systems() {
  static const Redis redis;
  static const Postgres postgres;
  static const Mariadb mariadb;
  static const Nginx nginx;
  static const Etcd etcd;
  static const Memcached memcached;
  static const Mosquitto mosquitto;
  static const std::array<const System*, 7> all = {&redis, &postgres, &mariadb, &nginx, &etcd, &memcached, &mosquitto};
  return all;
}

}  // namespace

const System* find_system(const Seen& seen) {
  const std::string program = program_name(seen);
  for (const System* system : all_systems())
    if (system->is(program)) return system;
  return nullptr;
}

std::string image_name(std::string_view image) {
  image = image.substr(0, image.find('@'));
  image = image.substr(image.rfind('/') + 1);
  return lower_case(image.substr(0, image.find(':')));
}

void take_password(NodeDraft& node, const std::function<bool(const std::string& variable)>& has) {
  if (node.system == nullptr || !node.password.empty()) return;
  for (const std::string& variable : node.system->password_variables()) {
    if (!has(variable)) continue;
    node.password = fmt::format("$(tr '\\0' '\\n' < /proc/$(cat $ROSE_PIDFILE_{})/environ | sed -n 's/^{}=//p')",
                                node.variable, variable);
    return;
  }
}

const System* find_system_of_program(std::string_view program) {
  for (const System* system : all_systems())
    if (system->is(program)) return system;
  return nullptr;
}

const System* find_system_of_image(std::string_view image) {
  const std::string name = image_name(image);
  for (const System* system : all_systems())
    if (name.find(system->name()) != std::string::npos ||
        (system->name() == "redis" && name.find("valkey") != std::string::npos))
      return system;
  return nullptr;
}

}  // namespace rose::draft
