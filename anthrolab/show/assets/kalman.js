"use strict";
(() => {
  const data = JSON.parse(document.getElementById("kalman-data").textContent);
  const box = (name) => document.getElementById("kalman-" + name);
  const drawn = document.getElementById("simulated");
  const show = () => {
    const floor = box("floor"), sigma = box("sigma"), scene = box("scene").value;
    box("floor-said").textContent = floor.dataset.values.split(",")[floor.value];
    box("sigma-said").textContent = sigma.dataset.values.split(",")[sigma.value];
    const reward = box("reward").value;
    sigma.disabled = data.without_sigma.includes(reward);
    const key = [scene, reward, floor.value, sigma.disabled ? 0 : sigma.value].join("|");
    box("said").innerHTML = data.said[key];  // made and escaped by anthrolab
    const titles = {};
    data.ids.forEach((id, k) => { titles[`annotations[${k}].text`] = data.weak[scene].includes(id) ? id + " (weak)" : id; });
    Plotly.update(drawn, {y: data.frames[key]}, titles);
  };
  for (const name of ["scene", "reward", "floor", "sigma"]) box(name).addEventListener("input", show);
  show();
})();
