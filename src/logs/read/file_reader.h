// Reads one log file: finds the form of its lines, and the node of each line if several nodes share the file.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "logs/line/form.h"
#include "logs/line/lines.h"
#include "logs/line/wrap.h"
#include "logs/read/sink.h"
#include "logs/reader.h"
#include "logs/time_keeper.h"

namespace rose::logs {

class FileReader {
 public:
  // `most`: how much of the file may be kept.
  FileReader(Bytes bytes, const Input& input, const ReadOptions& options, Share most, std::deque<FileResult>& out);

  void read();

 private:
  void take_sample();

  // Takes a line as it is in the file. If long lines were wrapped, joins their parts first: a line is kept until it is
  // known whether the next one continues it.
  void take_unwrapped(std::string_view line);
  void take_pending();

  void take(std::string_view line);

  // True if the lines of this file may come from several nodes.
  [[nodiscard]] bool names_nodes() const { return options_.node_of && source_.node.empty(); }

  // Several programs may write into one file. If only some of them write the year, the year of their lines is used for
  // the lines of the other programs.
  void find_year(const std::vector<std::string>& sample, const IsNode& is_node);

  // Determines which part of a line names the node that wrote it, unless a layer names the host. It is the part that is
  // a node's name in most lines of the sample.
  void find_writer(const std::vector<std::string>& sample, const IsNode& is_node);

  [[nodiscard]] std::string_view writer_in(const Parts& parts) const;

  void add_line(LineRole took) { sink_of(took).take(took, line_); }

  Sink& add_sink(const std::string& node, std::string_view host);

  // The sink for the current line. In a file of several nodes, each line names its host or continues the message before
  // it.
  Sink& sink_of(LineRole took);

  void read_lines();
  void read_journal();
  void close();

  LineReader lines_;
  const ReadOptions& options_;
  Source source_;                // what is known about the file before its lines are read
  std::deque<FileResult>& out_;  // one for each node; the first one has the lines whose node is unknown
  const Share most_;
  const CustomForm* custom_ = nullptr;
  std::optional<Form> form_;
  std::optional<Wrap> wrap_;
  // used with wrap_: the joined lines that were not taken yet, and the line that was read last
  std::string pending_, before_;
  std::uint64_t pending_lines_ = 0;
  std::vector<std::string> sample_;
  TimeKeeper clock_{0, 0};
  Parts parts_;
  std::uint64_t line_ = 0;
  Share kept_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::unordered_map<std::string, std::size_t> sink_of_host_;
  std::string last_host_;
  std::string part_;  // the host named by the heading of the current part; "" if there is none
  // The part of a line that names the node which wrote it, if no layer does.
  enum class Writer : std::uint8_t { unstated, thread, logger, bracket };
  Writer writer_ = Writer::unstated;
  std::size_t last_ = 0;
};

}  // namespace rose::logs
