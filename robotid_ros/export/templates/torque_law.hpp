// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

// The torque of the controller and nothing of ROS: it stands alone beside inverse_dynamics.hpp. No function allocates
// memory or waits.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "inverse_dynamics.hpp"

namespace @NAME@
{

constexpr std::size_t N = JOINTS;
using Values = std::array<double, N>;

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// Largest efforts of the arm's description [N m, or N].
constexpr Values largest = {@EFFORT@};

enum class Mode { gravity, pd, impedance };

struct Settings
{
  Mode mode = Mode::gravity;
  double friction_share = 0.0;    // of the identified friction; above 1, an arm pushes itself
  double friction_speed = 0.5;    // up to here it is compensated, from twice of it on it is not [rad/s, or m/s]
  double effort_share = 1.0;      // of the largest efforts: the command never exceeds it
  double rise_time = 0.05;        // from none to that effort at the fastest [s]
  double longest_period = 0.02;   // between two updates; a later one ends in an error [s]
  Values stiffness = {};          // [N m/rad, or N/m]
  Values damping = {};            // [N m s/rad, or N s/m]
};

// Where the arm is to be; what is not finite is not asked for.
struct Reference
{
  double position = nothing, velocity = nothing, acceleration = nothing;
};

class TorqueLaw
{
public:
  Settings settings;
  Values command = {};  // of the last update [N m, or N]
  Values feedback = {};  // the part of stiffness and damping in it

  void begin() {first_ = true;}

  // Take the measured state and the time since the last update [s]; return nothing, or why there is no command.
  const char * update(
    double step, const Values & q, const Values & dq, const std::array<Reference, N> & reference)
  {
    if (!first_ && !(step <= settings.longest_period)) {
      return "the update came later than longest_period";
    }
    const bool led = settings.mode == Mode::gravity;
    Values speed = {}, acceleration = {}, torque, still, lost;
    for (std::size_t i = 0; i < N; ++i) {
      if (!std::isfinite(q[i]) || !std::isfinite(dq[i])) {
        return "a position or velocity is not finite";
      }
      // A reference that ends, or was never there, leaves the arm where it led it; led by hand, where it was led.
      if (std::isfinite(reference[i].position)) {
        goal_[i] = reference[i].position;
        speed[i] = finite(reference[i].velocity);
        acceleration[i] = finite(reference[i].acceleration);
      } else if (first_ || led) {
        goal_[i] = q[i];
      }
    }
    if (settings.mode == Mode::impedance) {
      rigid_body(q.data(), dq.data(), acceleration.data(), default_coefficients, torque.data());
    } else {
      gravity(q.data(), default_coefficients, torque.data());
    }
    // Along a reference at its speed, which has no noise. What acts at rest too, springs and offsets, is no friction.
    const Values none = {}, & moving = led ? dq : speed;
    friction(q.data(), none.data(), torque.data(), default_coefficients, still.data());
    friction(q.data(), moving.data(), torque.data(), default_coefficients, lost.data());
    Values wanted = {};
    for (std::size_t i = 0; i < N; ++i) {
      const double part = std::clamp(2.0 - std::abs(moving[i]) / settings.friction_speed, 0.0, 1.0);
      feedback[i] = led ? 0.0 : settings.stiffness[i] * (goal_[i] - q[i]) + settings.damping[i] * (speed[i] - dq[i]);
      wanted[i] = torque[i] + still[i] + settings.friction_share * part * (lost[i] - still[i]) + feedback[i];
      const double most = settings.effort_share * largest[i];
      wanted[i] = std::clamp(wanted[i], -most, most);
      if (!first_ && std::isfinite(most)) {
        const double rise = most * std::max(step, 0.0) / settings.rise_time;
        wanted[i] = std::clamp(wanted[i], command[i] - rise, command[i] + rise);
      }
      if (!std::isfinite(wanted[i])) {
        return "the torque is not finite";
      }
    }
    command = wanted;
    first_ = false;
    return nullptr;
  }

private:
  static double finite(double value) {return std::isfinite(value) ? value : 0.0;}

  Values goal_ = {};
  bool first_ = true;
};

}  // namespace @NAME@
