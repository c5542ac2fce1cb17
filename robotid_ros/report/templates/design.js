// The arm in three dimensions: one mesh for each link, moved by its pose at the chosen moment.
robotid.ready.then(data => {
  const typed = (packed, kind) => new kind(Uint8Array.from(atob(packed.bdata), c => c.charCodeAt(0)).buffer);
  const floats = packed => typed(packed, Float32Array);
  const time = floats(data.time), poses = floats(data.poses), tip = floats(data.tip), links = data.links;
  const element = document.getElementById('scene'), slider = document.getElementById('time');
  if (!document.createElement('canvas').getContext('webgl')) element.closest('.player').classList.add('flat');
  const clock = document.getElementById('clock'), play = document.getElementById('play');
  const pick = (flat, offset) => flat.filter((_, k) => k % 3 === offset);
  const SHADES = ['#7fb0d6', '#dfe3e8'];
  const meshes = (bodies, style) => bodies.map(body => {
    const vertices = floats(body.vertices), faces = typed(body.faces, Int32Array);
    const colour = body.link < 0 ? '#9aa1aa' : SHADES[body.link % 2];
    return {link: body.link, vertices, trace: {type: 'mesh3d', x: pick(vertices, 0), y: pick(vertices, 1), z: pick(vertices, 2),
      i: pick(faces, 0), j: pick(faces, 1), k: pick(faces, 2), color: colour, flatshading: true, name: body.name,
      lighting: {ambient: 0.72, diffuse: 0.6, specular: 0.1, roughness: 0.8}, lightposition: {x: 1000, y: -2000, z: 4000},
      hoverinfo: 'name', ...style}};
  });
  const arm = meshes(data.bodies, {}), safety = meshes(data.capsules, {opacity: 0.22, visible: false, color: '#b07a00'});
  const moving = [...arm, ...safety];
  const [low, high] = [data.low, data.high];
  const plane = (x, y, z, colour, name, opacity = 0.35) => ({type: 'mesh3d', x, y, z, i: [0, 0], j: [1, 2], k: [2, 3], color: colour, opacity, name, hoverinfo: 'name'});
  const around = [plane([low[0], high[0], high[0], low[0]], [low[1], low[1], high[1], high[1]], [0, 0, 0, 0].map(() => data.floor),
    data.ground ? '#9aa58a' : '#d5d8dc', data.ground ? 'ground' : 'plane of the base')];
  data.walls.forEach((corner, side) => corner.forEach((at, axis) => {
    if (at === null) return;
    const [a, b] = [0, 1, 2].filter(k => k !== axis), points = [[], [], []];
    for (const [p, r] of [[low[a], low[b]], [high[a], low[b]], [high[a], high[b]], [low[a], high[b]]]) {
      points[axis].push(at); points[a].push(p); points[b].push(r);
    }
    around.push(plane(...points, '#8b5a83', `wall ${'xyz'[axis]} ${side ? '≤' : '≥'} ${at} m`, 0.1));
  }));
  const path = {type: 'scatter3d', mode: 'lines', x: pick(tip, 0), y: pick(tip, 1), z: pick(tip, 2), line: {color: '#d55e00', width: 3}, name: 'path of the tool', hoverinfo: 'name'};
  const dot = {type: 'scatter3d', mode: 'markers', x: [tip[0]], y: [tip[1]], z: [tip[2]], marker: {color: '#d55e00', size: 5}, name: 'tool', hoverinfo: 'name'};
  const span = k => ({range: [low[k], high[k]], title: {text: `${'xyz'[k]} [m]`}, backgroundcolor: '#f7f8f9', gridcolor: '#e3e6ea', showspikes: false, nticks: 6});
  const layout = {margin: {l: 0, r: 0, t: 0, b: 0}, showlegend: false, paper_bgcolor: '#fff', font: {size: 11, color: '#566170'},
    scene: {xaxis: span(0), yaxis: span(1), zaxis: span(2), aspectmode: 'data', dragmode: 'turntable', camera: {eye: {x: 1.0, y: -1.1, z: 0.55}, center: {x: 0, y: 0, z: -0.08}}}};
  const place = (body, frame) => {
    const {vertices, link} = body, count = vertices.length / 3;
    const x = new Float32Array(count), y = new Float32Array(count), z = new Float32Array(count);
    const p = link < 0 ? null : poses.subarray((frame * links + link) * 12, (frame * links + link) * 12 + 12);
    for (let k = 0; k < count; k++) {
      const a = vertices[3 * k], b = vertices[3 * k + 1], c = vertices[3 * k + 2];
      x[k] = p ? p[0] * a + p[1] * b + p[2] * c + p[3] : a;
      y[k] = p ? p[4] * a + p[5] * b + p[6] * c + p[7] : b;
      z[k] = p ? p[8] * a + p[9] * b + p[10] * c + p[11] : c;
    }
    return [x, y, z];
  };
  const tool = frame => {
    const p = poses.subarray((frame * links + links - 1) * 12), t = floats(data.tip_link);
    return [0, 1, 2].map(r => [p[4 * r] * t[3] + p[4 * r + 1] * t[7] + p[4 * r + 2] * t[11] + p[4 * r + 3]]);
  };
  moving.forEach(body => { [body.trace.x, body.trace.y, body.trace.z] = place(body, 0); });
  const traces = [...moving.map(body => body.trace), dot, path, ...around];
  slider.max = time.length - 1;

  // The vertical line in each chart stands over it: moving it redraws nothing.
  const cursors = () => document.querySelectorAll('.chart').forEach(chart => {
    if (!chart._fullLayout || !chart._fullLayout.xaxis) return;
    let line = chart.querySelector('.cursor');
    if (!line) {
      line = document.createElement('div');
      line.className = 'cursor';
      chart.append(line);
      chart.on('plotly_click', event => seek(event.points[0].x));
      chart.on('plotly_afterplot', cursors);
    }
    const axis = chart._fullLayout.xaxis, at = axis.l2p(time[frame]);
    line.style.left = `${axis._offset + at}px`;
    line.hidden = at < 0 || at > axis._length;
  });
  let frame = 0, busy = false, wanted = -1;
  const show = async next => {
    frame = next;
    slider.value = next;
    clock.textContent = `${time[next].toFixed(1)} s`;
    cursors();
    if (busy) { wanted = next; return; }
    busy = true;
    const shown = moving.map((body, k) => k).filter(k => moving[k].link >= 0 && moving[k].trace.visible !== false);
    const places = [...shown.map(k => place(moving[k], next)), tool(next)];
    await Plotly.restyle(element, {x: places.map(p => p[0]), y: places.map(p => p[1]), z: places.map(p => p[2])}, [...shown, moving.length]);
    busy = false;
    if (wanted >= 0) { const last = wanted; wanted = -1; await show(last); }
  };
  const seek = t => show(Math.max(0, Math.min(time.length - 1, Math.round(t / time[time.length - 1] * (time.length - 1)))));
  slider.oninput = () => show(Number(slider.value));
  document.getElementById('capsules').onchange = event => {
    safety.forEach(body => { body.trace.visible = event.target.checked; });
    const k = safety.map((_, n) => arm.length + n);
    if (k.length) Plotly.restyle(element, {visible: event.target.checked}, k).then(() => show(frame));
  };
  if (!safety.length) document.getElementById('capsules').parentElement.hidden = true;
  let running = false, started = 0, from = 0;
  const step = now => {
    if (!running) return;
    const t = (from + (now - started) / 1000 * Number(document.getElementById('speed').value)) % time[time.length - 1];
    if (!busy) seek(t);
    requestAnimationFrame(step);
  };
  const restart = () => { started = performance.now(); from = time[frame]; };
  play.onclick = () => {
    running = !running;
    play.textContent = running ? 'Pause' : 'Play';
    play.setAttribute('aria-pressed', String(running));
    restart();
    if (running) requestAnimationFrame(step);
  };
  document.getElementById('speed').onchange = restart;
  robotid.seek = seek;
  robotid.shown = Plotly.newPlot(element, traces, layout, {...robotid.config, toImageButtonOptions: {format: 'png', filename: 'arm'}}).then(() => {
    new MutationObserver(cursors).observe(document.querySelector('main'), {subtree: true, childList: true, attributes: false});
    cursors();
  });
});
