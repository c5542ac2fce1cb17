// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

// Torques of the identification at random states, and what the controller makes of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <new>
#include <random>
#include <string>

#include "description.hpp"
#include "torque_law.hpp"

static long allocations = 0;

void * operator new(std::size_t size)
{
  ++allocations;
  void * const memory = std::malloc(size);
  return memory != nullptr ? memory : throw std::bad_alloc();
}

// Not inlined: compilers would warn of free() after new.
__attribute__((noinline)) void operator delete(void * memory) noexcept {std::free(memory);}

__attribute__((noinline)) void operator delete(void * memory, std::size_t) noexcept {std::free(memory);}

namespace @NAME@
{

const double states[][3][JOINTS] = {@STATES@};  // positions, velocities, accelerations
const double torques[][JOINTS] = {@TORQUES@};
const char urdf[] = @URDF@;
const char turned[] = @TURNED@;  // the last joint by 0.05 rad

class Law : public ::testing::Test
{
protected:
  void drive(Mode mode, double friction_share)
  {
    law.settings.mode = mode;
    law.settings.friction_share = friction_share;
    law.settings.friction_speed = 1e6;
    law.settings.stiffness.fill(50.0);
    law.settings.damping.fill(5.0);
    law.begin();
  }

  const char * at(const double * q, const double * dq, double step = 0.002)
  {
    Values position, velocity;
    std::copy(q, q + N, position.begin());
    std::copy(dq, dq + N, velocity.begin());
    return law.update(step, position, velocity, reference);
  }

  TorqueLaw law;
  std::array<Reference, N> reference;
};

TEST_F(Law, IsTheIdentifiedTorque)
{
  for (std::size_t k = 0; k < std::size(states); ++k) {
    double torque[JOINTS], size = 0.0;
    inverse_dynamics(states[k][0], states[k][1], states[k][2], default_coefficients, torque);
    for (std::size_t i = 0; i < N; ++i) {
      size = std::max(size, std::abs(torques[k][i]));
      reference[i] = {states[k][0][i], states[k][1][i], states[k][2][i]};
    }
    drive(Mode::impedance, 1.0);
    ASSERT_EQ(at(states[k][0], states[k][1]), nullptr);
    for (std::size_t i = 0; i < N; ++i) {
      EXPECT_NEAR(torque[i], torques[k][i], 1e-12 * size);
      EXPECT_NEAR(law.command[i], std::clamp(torques[k][i], -largest[i], largest[i]), 1e-12 * size);
      EXPECT_EQ(law.feedback[i], 0.0);
    }
  }
}

TEST_F(Law, KeepsItsLimitsAndAllocatesNothing)
{
  std::mt19937 draw(1);
  std::uniform_real_distribution<double> any(-20.0, 20.0);
  long before = 0;
  for (const Mode mode : {Mode::gravity, Mode::pd, Mode::impedance}) {
    drive(mode, 1.0);
    law.settings.effort_share = 0.5;
    Values last = {};
    for (int k = 0; k < 2000; ++k) {
      double q[JOINTS], dq[JOINTS];
      for (std::size_t i = 0; i < N; ++i) {
        q[i] = any(draw);
        dq[i] = any(draw);
        reference[i] = {k % 3 ? any(draw) : nothing, any(draw), any(draw)};
      }
      before = allocations;
      ASSERT_EQ(at(q, dq), nullptr);
      ASSERT_EQ(allocations, before);
      for (std::size_t i = 0; i < N && std::isfinite(largest[i]); ++i) {
        ASSERT_LE(std::abs(law.command[i]), 0.5 * largest[i]);
        ASSERT_LE(k ? std::abs(law.command[i] - last[i]) : 0.0, 0.5 * largest[i] * 0.002 / 0.05 * (1.0 + 1e-9));
      }
      last = law.command;
    }
  }
}

TEST_F(Law, EndsWhereItCannotKnow)
{
  const double q[JOINTS] = {}, poor[JOINTS] = {nothing};
  drive(Mode::pd, 0.0);
  EXPECT_EQ(at(q, q, 10.0), nullptr);  // the first update has no step
  EXPECT_NE(at(q, q, 0.021), nullptr);
  EXPECT_EQ(at(q, q, 0.019), nullptr);
  EXPECT_NE(at(q, q, nothing), nullptr);
  EXPECT_NE(at(poor, q), nullptr);
  EXPECT_NE(at(q, poor), nullptr);
}

TEST_F(Law, HoldsAnArmWhereItWasLedByHand)
{
  const double here[JOINTS] = {}, still[JOINTS] = {};
  double there[JOINTS];
  std::fill(there, there + JOINTS, 0.3);
  drive(Mode::gravity, 0.0);
  at(here, still);
  at(there, still);
  law.settings.mode = Mode::pd;
  at(there, still);
  for (std::size_t i = 0; i < N; ++i) {
    EXPECT_EQ(law.feedback[i], 0.0);
  }
  at(here, still);
  for (std::size_t i = 0; i < N; ++i) {
    EXPECT_NEAR(law.feedback[i], 15.0, 1e-12);
  }
}

TEST(Description, IsThatOfTheArm)
{
  EXPECT_EQ(difference(urdf, 1e-6), "");
  if (!base.empty()) {
    EXPECT_NE(difference("<robot", 0.01), "");
    EXPECT_NE(difference(turned, 0.01).find(joint_names[N - 1]), std::string::npos);
    EXPECT_EQ(difference(turned, 0.06), "");
  }
}

}  // namespace @NAME@
