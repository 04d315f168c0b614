//! Noise as machines make it: what is added to the logarithm of each time, sample by sample.

use holdpoint_stats::random::Random;

/// A kind of noise. Times are in logarithms, so 0.01 is about 1 %.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Independent, normal, 1 %.
    Gaussian,
    /// Independent, Student's t with 2 degrees, scale 1 %: no variance.
    StudentT2,
    /// Independent, lognormal delays of 2 % in the median: skewed.
    Lognormal,
    /// Normal, 1 %, and 5 % slower every 200 samples.
    Drift,
    /// Normal, 1 %, and a new level (3 %) every 100 samples or so.
    Steps,
    /// Normal, 1 %, and a neighbour who slows one of two cores by 40 % for about 50 samples, every 150 or so.
    Phases,
    /// Autocorrelated with this coefficient, 2 %.
    Autocorrelated(f64),
    /// Normal, 1 % for base and 3 % for head.
    Heteroscedastic,
    /// Normal, 0.5 %, and each process has an offset of its own, 2 %.
    ProcessBias,
    /// Steps, phases, process bias, autocorrelation 0.9 and heavy tails together.
    Everything,
}

/// All kinds, in the order of the tables.
pub const ALL: [Noise; 12] = [
    Noise::Gaussian,
    Noise::StudentT2,
    Noise::Lognormal,
    Noise::Drift,
    Noise::Steps,
    Noise::Phases,
    Noise::Autocorrelated(0.6),
    Noise::Autocorrelated(0.9),
    Noise::Autocorrelated(0.97),
    Noise::Heteroscedastic,
    Noise::ProcessBias,
    Noise::Everything,
];

impl Noise {
    /// So much noise between processes that 1 % is hard to see.
    pub fn is_loud(self) -> bool {
        matches!(self, Self::ProcessBias | Self::Everything)
    }

    /// Its row's name.
    pub fn name(self) -> String {
        match self {
            Self::Gaussian => "normal 1 %".into(),
            Self::StudentT2 => "Student t2".into(),
            Self::Lognormal => "lognormal".into(),
            Self::Drift => "drift".into(),
            Self::Steps => "steps".into(),
            Self::Phases => "busy neighbour".into(),
            Self::Autocorrelated(lag) => format!("autocorrelation {lag}"),
            Self::Heteroscedastic => "sides differ in noise".into(),
            Self::ProcessBias => "process bias 2 %".into(),
            Self::Everything => "everything".into(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Base,
    Head,
}

/// A process: which core it got, and how lucky it is.
pub struct Process {
    core: usize,
    bias: f64,
    side: Side,
}

/// A machine at a time; time goes on with each sample.
pub struct Machine {
    pub random: Random,
    noise: Noise,
    level: f64,
    time: f64,
    is_neighbour_busy: bool,
}

impl Machine {
    pub fn new(noise: Noise, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let level = random.normal();
        // The neighbour may have come before we did.
        let is_neighbour_busy = random.uniform() < 0.25;
        Self { random, noise, level, time: 0.0, is_neighbour_busy }
    }

    pub fn start(&mut self, side: Side) -> Process {
        let bias = match self.noise {
            Noise::ProcessBias | Noise::Everything => 0.02 * self.random.normal(),
            _ => 0.0,
        };
        Process { core: self.random.below(2), bias, side }
    }

    /// The logarithm of the next time of unchanged code.
    pub fn sample(&mut self, process: &Process) -> f64 {
        self.time += 1.0;
        let normal = self.random.normal();
        process.bias
            + match self.noise {
                Noise::Gaussian => 0.01 * normal,
                Noise::StudentT2 => 0.01 * self.student_t2(normal),
                Noise::Lognormal => 0.02 * normal.exp(),
                Noise::Drift => 0.01 * normal + 0.05 * self.time / 200.0,
                Noise::Steps => 0.01 * normal + self.steps(),
                Noise::Phases => 0.01 * normal + self.neighbour(process),
                Noise::Autocorrelated(lag) => 0.02 * self.correlated(lag, normal),
                Noise::Heteroscedastic if process.side == Side::Head => 0.03 * normal,
                Noise::Heteroscedastic => 0.01 * normal,
                Noise::ProcessBias => 0.005 * normal,
                Noise::Everything => {
                    0.02 * self.correlated(0.9, normal)
                        + self.neighbour(process)
                        + 0.005 * self.student_t2(normal)
                }
            }
    }

    fn student_t2(&mut self, normal: f64) -> f64 {
        // A chi-squared with two degrees is twice an exponential.
        normal / (-self.random.uniform().ln()).sqrt()
    }

    fn steps(&mut self) -> f64 {
        if self.random.uniform() < 0.01 {
            self.level = self.random.normal();
        }
        0.03 * self.level
    }

    fn neighbour(&mut self, process: &Process) -> f64 {
        let change = if self.is_neighbour_busy { 1.0 / 50.0 } else { 1.0 / 150.0 };
        if self.random.uniform() < change {
            self.is_neighbour_busy = !self.is_neighbour_busy;
        }
        if self.is_neighbour_busy && process.core == 0 { 1.4_f64.ln() } else { 0.0 }
    }

    fn correlated(&mut self, lag: f64, normal: f64) -> f64 {
        self.level = lag * self.level + (1.0 - lag * lag).sqrt() * normal;
        self.level
    }
}
