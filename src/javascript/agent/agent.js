// This agent is loaded into Node.js before the program (NODE_OPTIONS=--require). It reports the entries of the
// application's functions. The inspector of the same process lists the functions (precise coverage), and it evaluates
// the condition of a breakpoint at the beginning of each function. The condition reports the entry and is false, so
// that the program never stops. A function that another function creates is known only after the creating function was
// called, so its first entry may be reported a little later.
'use strict';
(() => {
  const library = process.env.ROSE_NODE_AGENT;
  if (!library || process.env.NODE_V8_COVERAGE) return;
  const later = setImmediate, often = setInterval;
  const scanMs = 100;
  // The number of reports per function is limited: to `burst` at once, and then to `perSecond` in each second.
  const burst = 1000, perSecond = 100, secondMs = 1000;
  const hook = Symbol.for('rose.enter');

  // The module's name: "store" for "/srv/store.js" and for "/srv/store/index.mjs".
  const moduleOf = (file) => {
    const path = require('path');
    const name = path.basename(file).replace(/\.[cm]?[jt]sx?$/, '');
    return name === 'index' ? path.basename(path.dirname(file)) : name;
  };

  // The application's files are those outside node_modules. If the program is itself installed as a package, it consists
  // of this package and of those whose names show that they are parts of the same system: "verdaccio",
  // "@verdaccio/store", "verdaccio-htpasswd". Packages with other names are libraries.
  const packageOf = (path) => {
    const folder = '/node_modules/', at = path.lastIndexOf(folder);
    if (at < 0) return '';
    const [first, second] = path.slice(at + folder.length).split('/');
    return first.startsWith('@') ? first + '/' + second : first;
  };
  let program = '';
  try {
    program = packageOf(require('fs').realpathSync(process.argv[1]));
  } catch (error) {  // there is no script
  }
  const system = program.startsWith('@') ? program.slice(1, program.indexOf('/')) : program;
  const ofApplication = (path) => {
    const name = packageOf(path);
    return name === '' || (system !== '' && (name === program || name === system || name.startsWith(system + '-') ||
      name.startsWith('@' + system + '/')));
  };

  const hidden = /\/\*[^]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
  // For each position in the source, the class whose body directly contains the position. The result is a list of
  // [offset, name]; each entry applies from its offset up to the offset of the next entry.
  const classesIn = (source) => {
    const code = source.replace(hidden, (text) => ' '.repeat(text.length));
    const open = [], out = [[0, '']];
    let begin = 0;
    for (let at = 0; at < code.length; ++at) {
      const one = code[at];
      if (one === '{') {
        const found = /\bclass\s+([A-Za-z_$][\w$]*)[^(){}]*$/.exec(code.slice(begin, at));
        open.push(found ? found[1] : '');
        out.push([at, open[open.length - 1]]);
      } else if (one === '}') {
        open.pop();
        out.push([at, open[open.length - 1] || '']);
      }
      if (one === '{' || one === '}' || one === ';') begin = at + 1;
    }
    return out;
  };

  try {
    const inspector = require('inspector');
    const agent = { exports: {} };
    process.dlopen(agent, library);
    const { define, enter } = agent.exports;
    const own = require('url').pathToFileURL(__filename).href;
    const session = new inspector.Session();
    session.connect();
    const post = (method, params) => {
      let answer;
      session.post(method, params, (error, result) => { if (!error) answer = result; });
      return answer;
    };

    const scripts = new Map(), known = new Set(), watched = new Map();
    let waiting = false;

    const positionIn = (script, offset) => {
      let low = 0, high = script.lines.length;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (script.lines[middle] <= offset) low = middle;
        else high = middle;
      }
      return { scriptId: script.id, lineNumber: low, columnNumber: offset - script.lines[low] };
    };
    const read = (script) => {
      if (script.lines) return true;
      const answer = post('Debugger.getScriptSource', { scriptId: script.id });
      if (!answer) return false;
      script.lines = [0];
      for (let at = answer.scriptSource.indexOf('\n'); at >= 0; at = answer.scriptSource.indexOf('\n', at + 1))
        script.lines.push(at + 1);
      script.classes = classesIn(answer.scriptSource);
      return true;
    };
    const nameOf = (script, one) => {
      const begin = one.ranges[0].startOffset;
      let inside = '';
      for (const [from, name] of script.classes) {
        if (from >= begin) break;
        inside = name;
      }
      const own = one.functionName.replace(/^(?:get|set|static) /, '') ||
                  'anonymous@' + (positionIn(script, begin).lineNumber + 1);
      return script.module + '.' + (inside && own !== inside ? inside + '.' : '') + own;
    };
    const arm = (one) => {
      const answer = post('Debugger.setBreakpoint',
                          { location: one.location, condition: `globalThis[Symbol.for('rose.enter')](${one.id})` });
      one.breakpoint = answer && answer.breakpointId;
    };
    const watch = (script, one) => {
      const { startOffset, endOffset } = one.ranges[0];
      const places = post('Debugger.getPossibleBreakpoints', {
        start: positionIn(script, startOffset), end: positionIn(script, endOffset), restrictToFunction: true });
      if (!places || places.locations.length === 0) return;
      const id = define(nameOf(script, one));
      if (id === 0) return;  // there are too many functions
      const entry = { id, location: places.locations[0], left: burst, seen: false };
      watched.set(id, entry);
      arm(entry);
      if (one.ranges[0].count > 0) globalThis[hook](id);
    };
    const scan = () => {
      waiting = false;
      const taken = post('Profiler.takePreciseCoverage');
      if (!taken) return;
      for (const of of taken.result) {
        const script = scripts.get(of.scriptId);
        if (!script || !read(script)) continue;
        for (const one of of.functions) {
          const key = of.scriptId + ':' + one.ranges[0].startOffset + ':' + one.ranges[0].endOffset;
          if (one.ranges[0].startOffset === 0 && one.functionName === '' || known.has(key)) continue;
          known.add(key);
          watch(script, one);
        }
      }
    };
    const soon = () => {
      if (waiting) return;
      waiting = true;
      later(scan).unref();
    };

    Object.defineProperty(globalThis, hook, { value: (id) => {
      const one = watched.get(id);
      if (!one.seen) one.seen = true, soon();  // the function may have created other functions
      if (--one.left < 0) return false;
      const last = one.left === 0;
      enter(id, last ? 1 : 0);
      if (last && one.breakpoint) later(() => {
        if (one.breakpoint) post('Debugger.removeBreakpoint', { breakpointId: one.breakpoint });
        one.breakpoint = undefined;
      }).unref();
      return false;
    } });
    session.on('Debugger.scriptParsed', ({ params }) => {
      if (!params.url.startsWith('file:') || params.url === own) return;
      const path = require('url').fileURLToPath(params.url);
      if (!ofApplication(path)) return;
      scripts.set(params.scriptId, { id: params.scriptId, module: moduleOf(path) });
      soon();
    });
    post('Debugger.enable');
    post('Profiler.enable');
    post('Profiler.startPreciseCoverage', { callCount: false, detailed: false });
    often(scan, scanMs).unref();
    often(() => {
      for (const one of watched.values()) {
        one.left = Math.min(burst, Math.max(0, one.left) + perSecond);
        if (!one.breakpoint) arm(one);
      }
    }, secondMs).unref();
  } catch (error) {  // the program runs without the agent
    process.stderr.write(`rose: functions of JavaScript are not watched: ${error.message}\n`);
  }
})();
